#include "operator/kube/cluster/usage_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/api/status.h"
#include "tests/unit/operator/kube/chart_rights.h"
#include "tests/unit/operator/kube/fake_api_server.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Leaders one after the other, at one API server. A job of the namespace lab computes all the time.
class UsageRecordTest : public testing::Test {
 protected:
  UsageRecordTest() {
    server_.permits = chart_rights({"muster-leader"});
    lead();
  }

  void lead() {
    begin_ = now_;
    ended_ = 0;
    UsageRecord::Counting counting;
    counting.begin = begin_;
    counting.now = [this] { return now_; };
    counting.used = [this] {
      plan::UsageByNamespace used;
      TimeSpent spent;
      spent[TimeUse::computing] = std::chrono::duration<double>(now_ - begin_).count();
      used["lab"].charge(spent, 1);
      if (ended_ > 0) used["lab"].ended["Succeeded"] = ended_;
      return used;
    };
    record_ = std::make_unique<UsageRecord>(
        server_, [this] { return leads_; }, ObjectName{"muster-system", "muster-usage"}, jobs_,
        counting);
  }

  plan::UsageTotals totals() {
    return plan::UsageTotals::of(server_.object("configmaps", "muster-usage")["data"]);
  }
  plan::Usage usage(const std::string& month = "2026-11") {
    return totals().months().at(month).at("lab");
  }
  double computed() { return usage().spent[TimeUse::computing]; }

  FakeApiServer server_;
  Store<WholeObject> jobs_;
  bool leads_ = true;
  api::Time now_ = api::parse_time("2026-11-02T10:00:00Z").value();
  api::Time begin_ = now_;
  int ended_ = 0;
  std::unique_ptr<UsageRecord> record_;
};

TEST_F(UsageRecordTest, AddsUpWhatIsNew) {
  record_->write();
  for (int i = 1; i <= 3; ++i) {
    now_ += 300s;
    ended_ = i;
    record_->write();
    EXPECT_EQ(computed(), 300 * i);
    EXPECT_EQ(usage().gpu_seconds, 300 * i);
    EXPECT_EQ(usage().ended.at("Succeeded"), i);
    EXPECT_EQ(totals().until, now_);
  }
}

TEST_F(UsageRecordTest, AMonthHasWhatWasWrittenInIt) {
  now_ += 300s;
  record_->write();
  now_ = api::parse_time("2026-12-01T00:00:10Z").value();
  record_->write();
  EXPECT_EQ(computed(), 300);
  EXPECT_EQ(usage("2026-12").spent.total(),
            std::chrono::duration<double>(now_ - begin_).count() - 300);
}

TEST_F(UsageRecordTest, ANewLeaderAddsToWhatIsThereAndTheTimeInBetween) {
  now_ += 300s;
  ended_ = 1;
  record_->write();
  now_ += 20s;
  const Json job = {
      {"apiVersion", "muster.dev/v1alpha1"},
      {"kind", "TrainingJob"},
      {"metadata",
       {{"name", "mnist"}, {"namespace", "lab"}, {"creationTimestamp", "2026-11-02T10:00:00Z"}}},
      {"spec", {{"replicaSpecs", {{"worker", {{"replicas", 1}}}}}}}};
  server_.put(job);
  server_.list(jobs_, "trainingjobs");
  lead();
  now_ += 5s;
  record_->write();
  record_->write();
  EXPECT_EQ(computed(), 300 + 5);
  EXPECT_EQ(usage().spent[TimeUse::unknown], 20);
  EXPECT_EQ(usage().ended.at("Succeeded"), 1);
}

TEST_F(UsageRecordTest, AWriteWhoseAnswerWasLostIsNotAddedTwice) {
  for (const char* call : {"create", "update"}) {
    now_ += 300s;
    server_.loses_answer = [](const Request& request) { return request.method != Method::get; };
    EXPECT_THROW(record_->write(), Unavailable) << call;
    server_.loses_answer = {};
    now_ += 300s;
    record_->write();
  }
  EXPECT_EQ(computed(), 1200);
}

TEST_F(UsageRecordTest, AWriteThatFailedIsMadeUpFor) {
  record_->write();
  now_ += 300s;
  server_.intercept = [](const Request& request) -> std::optional<Response> {
    if (request.method == Method::get) return std::nullopt;
    Response refused;
    refused.status = 500;
    return refused;
  };
  EXPECT_THROW(record_->write(), Unavailable);
  server_.intercept = {};
  record_->write();
  EXPECT_EQ(computed(), 300);
}

TEST_F(UsageRecordTest, AConflictIsReadAgain) {
  record_->write();
  now_ += 300s;
  int conflicts = 2;
  server_.intercept = [&](const Request& request) -> std::optional<Response> {
    if (request.method == Method::get || conflicts-- <= 0) return std::nullopt;
    Response refused;
    refused.status = 409;
    refused.body = R"({"kind": "Status", "code": 409, "reason": "Conflict"})";
    return refused;
  };
  record_->write();
  EXPECT_EQ(computed(), 300);
}

TEST_F(UsageRecordTest, OnlyTheLeaderWrites) {
  leads_ = false;
  EXPECT_THROW(record_->write(), Unavailable);
  EXPECT_FALSE(server_.has("configmaps", "muster-usage"));
}

TEST_F(UsageRecordTest, WhatItCannotReadStaysAsItIs) {
  record_->write();
  Json object = server_.object("configmaps", "muster-usage");
  object["data"]["2026-11"] = "lost";
  server_.put(object);
  try {
    record_->write();
    FAIL();
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("ConfigMap muster-system/muster-usage: data.2026-11: "));
  }
  EXPECT_EQ(server_.object("configmaps", "muster-usage")["data"]["2026-11"], "lost");
}

}  // namespace
}  // namespace muster::kube
