#include "operator/kube/cluster/usage_record.h"

#include <algorithm>
#include <optional>

#include "common/documents/json.h"
#include "common/program/log.h"
#include "common/random.h"
#include "common/threads/pause.h"

namespace muster::kube {

namespace {

constexpr int kTries = 5;            // while others write the ConfigMap too
constexpr size_t kMostAttempts = 8;  // that are remembered

}  // namespace

void UsageRecord::write() {
  for (int i = 0; i < kTries; ++i)
    if (try_once()) return;
  throw Unavailable("ConfigMap " + name_.key() +
                    ": expected to write it, found that others wrote it at the same time " +
                    std::to_string(kTries) + " times");
}

// Returns false if somebody else has written in between.
bool UsageRecord::try_once() {
  std::optional<Json> object = client_.get(config_maps(), name_);
  plan::UsageTotals totals;
  try {
    totals = plan::UsageTotals::of(object ? member(*object, "data") : Json());
  } catch (const Invalid& error) {
    throw Invalid("ConfigMap " + name_.key() + ": " + error.what());
  }
  const auto done = std::ranges::find(attempts_, totals.write, &Attempt::name);
  if (done != attempts_.end()) settle(Attempt(*done));
  const Attempt attempt{random_digits(), counting_.used()};
  const api::Time now = counting_.now();
  totals.add(plan::month_of(now), news(totals, attempt.used));
  totals.until = now;
  totals.write = attempt.name;
  const bool is_new = !object;
  if (is_new)
    object = {{"apiVersion", config_maps().api_version()},
              {"kind", config_maps().kind},
              {"metadata", {{"name", name_.name}, {"namespace", name_.name_space}}}};
  (*object)["data"] = totals.data();
  attempts_.push_back(attempt);
  if (attempts_.size() > kMostAttempts) attempts_.erase(attempts_.begin());
  try {
    is_new ? client_.create(config_maps(), *object) : client_.update(config_maps(), *object);
  } catch (const ApiUnavailable& error) {
    if (error.status().code == 409) return false;
    throw;
  }
  settle(attempt);
  return true;
}

// Returns what is to be added to `totals`.
plan::UsageByNamespace UsageRecord::news(const plan::UsageTotals& totals,
                                         const plan::UsageByNamespace& used) {
  plan::UsageByNamespace news;
  for (const auto& [name_space, usage] : used) {
    const auto before = recorded_.find(name_space);
    news[name_space] = before == recorded_.end() ? usage : usage.since(before->second);
  }
  if (has_joined_ || !totals.until) return news;
  for (const std::string& key : jobs_.keys()) {
    const std::optional<WholeObject> object = jobs_.get(key);
    if (!object) continue;
    try {
      const api::TrainingJob job = api::to_training_job(object->json());
      plan::count_gap(news, job, *totals.until, counting_.begin, counting_.looked_until);
    } catch (const Json::exception&) {
      // The schema of the CRD does not allow this, and such a job does not run.
    }
  }
  return news;
}

void UsageRecord::settle(const Attempt& attempt) {
  recorded_ = attempt.used;
  has_joined_ = true;
  attempts_.clear();
}

void UsageRecord::try_to_write() {
  try {
    write();
  } catch (const Unavailable& error) {
    log::warning(std::string("what jobs have used is not written: ") + error.what());
  } catch (const Invalid& error) {
    log::error(std::string("what jobs have used is not written: ") + error.what());
  }
}

void UsageRecord::run(const std::stop_token& stop) {
  do try_to_write();
  while (pause_for(kEvery, stop));
}

}  // namespace muster::kube
