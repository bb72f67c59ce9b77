#include "operator/local/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::local {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Pair;

TEST(Expand, follows_kubernetes) {
  const Variables variables = {{"A", "one"}, {"EMPTY", ""}};
  const std::pair<const char*, const char*> cases[] = {
      {"$(A)", "one"},
      {"x$(A)y$(A)",
       "xoney"
       "one"},
      {"$$(A)", "$(A)"},
      {"$$$(A)", "$one"},
      {"$(B)", "$(B)"},
      {"[$(EMPTY)]", "[]"},
      {"$A ${A}", "$A ${A}"},
      {"$(A", "$(A"},
      {"$", "$"},
      {"$$", "$"},
      {"", ""},
      {"$()", "$()"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(expand(text, variables), expected) << text;
}

ContainerCommand read(const char* pod_template, const Variables& ours = {}) {
  return container_command(Document::parse(pod_template, "test").value(), ours);
}

TEST(ContainerCommand, takes_the_container_that_counts) {
  const auto command = read(
      "spec: {containers: [{name: sidecar, command: [b]}, {name: tensorflow, command: [echo, a], "
      "args: [b], workingDir: sub}]}");
  EXPECT_THAT(command.command, ElementsAre("echo", "a"));
  EXPECT_THAT(command.arguments, ElementsAre("b"));
  EXPECT_EQ(command.working_directory, "sub");
}

TEST(ContainerCommand, lets_the_user_win_but_for_reserved_names) {
  const auto command = read(
      "spec: {containers: [{name: t, env: [{name: MUSTER_JOB, value: mine}, {name: OURS, value: "
      "mine}, {name: BOTH, value: $(OURS)/$(TF_CONFIG)}], args: [$(BOTH)]}]}",
      {{"MUSTER_JOB", "job"}, {"TF_CONFIG", "{}"}, {"OURS", "ours"}});
  EXPECT_THAT(command.variables, Contains(Pair("MUSTER_JOB", "job")));
  EXPECT_THAT(command.variables, Contains(Pair("OURS", "mine")));
  EXPECT_THAT(command.arguments, ElementsAre("mine/{}"));
}

TEST(ContainerCommand, names_variables_that_only_kubernetes_knows) {
  const auto command = read(
      "spec: {containers: [{name: t, env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: s, "
      "key: k}}}], envFrom: [{configMapRef: {name: c}}]}]}");
  EXPECT_THAT(command.left_out, ElementsAre("PASSWORD (secretKeyRef)", "envFrom"));
}

TEST(ContainerCommand, bounds_the_grace) {
  EXPECT_EQ(read("{}").grace.count(), 120);
  EXPECT_EQ(read("spec: {terminationGracePeriodSeconds: 5}").grace.count(), 5);
  EXPECT_EQ(read("spec: {terminationGracePeriodSeconds: -5}").grace.count(), 0);
  EXPECT_EQ(read("spec: {terminationGracePeriodSeconds: 9000000000000}").grace.count(), 86400);
}

TEST(ContainerCommand, survives_templates_of_wrong_kinds) {
  for (const char* text : {"null", "[1]", "spec: 3", "spec: {containers: 7}",
                           "spec: {containers: [4]}", "spec: {containers: [{env: {a: b}}]}",
                           "spec: {containers: [{command: run, args: {x: 1}, env: [3]}]}"}) {
    EXPECT_TRUE(read(text).command.empty()) << text;
  }
}

}  // namespace
}  // namespace muster::local
