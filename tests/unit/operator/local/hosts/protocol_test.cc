#include "operator/local/hosts/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/common/error_of.h"

namespace muster::local {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(HostProtocol, ARequestIsReadAsItWasWritten) {
  const HostRequest request{{"sh", "-c", "echo \"a b\"\n"}, {{"A", "=\n"}, {"B", ""}}, "/tmp/x y"};
  const std::string line = to_json(request).dump();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const HostRequest read = parse_host_request(line);
  EXPECT_EQ(read.command, request.command);
  EXPECT_EQ(read.environment, request.environment);
  EXPECT_EQ(read.directory, request.directory);
}

TEST(HostProtocol, FactsAreReadAsTheyWereWritten) {
  const HostFacts facts{8, 2, {20000, 20007}, "no room"};
  const HostFacts read = parse_host_facts(to_json(facts).dump());
  EXPECT_EQ(read.cpus, 8);
  EXPECT_EQ(read.gpus, 2);
  EXPECT_EQ(read.ports, facts.ports);
  EXPECT_EQ(read.problem, facts.problem);
}

TEST(HostProtocol, ASurveyIsReadAsItWasWritten) {
  const SurveyRequest read = parse_survey_request(
      to_json(SurveyRequest{"/job", "sign", "17", "10.0.0.7", {"/data"}, true}).dump());
  EXPECT_EQ(read.folder, "/job");
  EXPECT_EQ(read.file, "sign");
  EXPECT_EQ(read.content, "17");
  EXPECT_EQ(read.address, "10.0.0.7");
  EXPECT_EQ(read.folders, std::vector<std::string>{"/data"});
  EXPECT_TRUE(read.trainer);
}

TEST(HostProtocol, WhatIsNoneOfItIsRefused) {
  for (const char* line : {"", "hello", "{}", "[]", "{\"protocol\": 0}", "{\"protocol\": \"1\"}"}) {
    EXPECT_THAT(error_of([&] { parse_host_request(line); }), HasSubstr("protocol 1")) << line;
    EXPECT_THAT(error_of([&] { parse_survey_request(line); }), HasSubstr("protocol 1")) << line;
    EXPECT_THAT(error_of([&] { parse_host_facts(line); }), HasSubstr("protocol 1")) << line;
  }
  EXPECT_THAT(error_of([&] { parse_host_request("{\"protocol\": 1}"); }), HasSubstr("a command"));
}

TEST(HostProtocol, HostileNumbersAreCut) {
  const HostFacts facts = parse_host_facts(
      R"({"protocol": 1, "cpus": -3, "gpus": 99999999999, "ports": [0, 7, 70000, "x", 1.5]})");
  EXPECT_EQ(facts.cpus, 1);
  EXPECT_EQ(facts.gpus, 1'000'000);
  EXPECT_EQ(facts.ports, std::vector<int>{7});
}

}  // namespace
}  // namespace muster::local
