#include "operator/local/job_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/documents/json_file.h"
#include "common/error.h"
#include "operator/local/yaml_text.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::local {
namespace {

TEST(ToYaml, is_read_back_as_the_same_value) {
  const Json values[] = {
      nullptr,
      Json::object(),
      Json::array(),
      3,
      -2.5,
      1e300,
      "text",
      "",
      "true",
      "yes",
      "12",
      "1e3",
      "0x10",
      "~",
      "null",
      "- a",
      "a: b",
      "# no comment",
      " padded ",
      "line\nbreak\ttab \"quoted\" \\ back",
      "\xC3\xA9\xE2\x82\xAC",
      {{"a", {{"b", {1, 2, {{"c", nullptr}}}}}}, {"empty", Json::array()}, {"d e", "f"}},
      Json::array({Json::array({1, Json::array({2})}), {{"x", Json::array({"y"})}, {"z", 1}}}),
      {{"true", 1}, {"1", 2}},
  };
  for (const Json& value : values) {
    const std::string text = to_yaml(value);
    EXPECT_EQ(Document::parse(text, "test").value(), value) << text;
  }
}

TEST(JobState, survives_writing_and_reading) {
  const test::TemporaryFolder scratch;
  const JobDirectory directory(scratch.path());
  EXPECT_FALSE(load_state(directory));
  JobState state;
  state.name = "job";
  state.uid = "u";
  state.generation = 3;
  state.addresses = {{{"chief-0", 20001}}, {{"chief-0", "10.0.0.7"}}};
  state.wall_seconds = 1.5;
  state.workers = 3;
  plan::ObservedReplica replica;
  replica.role = api::Role::ps;
  replica.index = 2;
  replica.attempt = 4;
  replica.run = 1;
  replica.uid = "ps-2-4";
  replica.phase = plan::Phase::failed;
  replica.deleting = true;
  replica.exit_code = 137;
  replica.last_line = "not \xff UTF-8";
  replica.started = api::Time(std::chrono::milliseconds(1234));
  state.replicas = {replica};
  state.status = {{"restarts", 1}};
  save_state(directory, state);
  const JobState read = load_state(directory).value();
  EXPECT_EQ(read.name, "job");
  EXPECT_EQ(read.generation, 3);
  EXPECT_EQ(read.addresses, state.addresses);
  EXPECT_EQ(read.wall_seconds, 1.5);
  EXPECT_EQ(read.workers, 3);
  EXPECT_FALSE(read.threads);
  EXPECT_EQ(read.status, state.status);
  ASSERT_EQ(read.replicas.size(), 1u);
  EXPECT_EQ(read.replicas[0].role, api::Role::ps);
  EXPECT_EQ(read.replicas[0].attempt, 4);
  EXPECT_EQ(read.replicas[0].uid, "ps-2-4");
  EXPECT_EQ(read.replicas[0].phase, plan::Phase::failed);
  EXPECT_TRUE(read.replicas[0].deleting);
  EXPECT_EQ(read.replicas[0].exit_code, 137);
  EXPECT_EQ(read.replicas[0].started, replica.started);
  EXPECT_FALSE(read.replicas[0].finished);
}

TEST(JobState, that_is_damaged_is_refused_with_file_field_and_a_way_on) {
  const test::TemporaryFolder scratch;
  const JobDirectory directory(scratch.path());
  save_state(directory, JobState{});
  const Json whole = read_json_or_null(directory.state());
  const auto with = [&](const char* field, const Json& value) {
    Json state = whole;
    state[field] = value;
    return state.dump();
  };
  const std::pair<std::string, const char*> cases[] = {
      {"", "the JSON that `muster run` wrote, found something else"},
      {"{", "the JSON that `muster run` wrote, found something else"},
      {"[]", "an object, found an empty list"},
      {with("name", 3), "name to be a string, found 3 (an integer)"},
      {with("uid", nullptr), "uid to be a string, found none"},
      {with("generation", 1.5), "generation to be an integer, found 1.5"},
      {with("ports", Json::array()), "ports to be an object of integers, found an empty list"},
      {with("ports", {{"chief-0", "x"}}), "ports.chief-0 to be a port, found \"x\""},
      {with("ports", {{"chief-0", 70000}}), "ports.chief-0 to be a port, found 70000"},
      {with("replicas", 1), "replicas to be a list, found 1"}};
  for (const auto& [text, words] : cases) {
    std::ofstream(directory.state()) << text;
    try {
      load_state(directory);
      ADD_FAILURE() << text;
    } catch (const Invalid& error) {
      EXPECT_THAT(error.what(),
                  testing::AllOf(testing::HasSubstr("job.json: damaged: expected "),
                                 testing::HasSubstr(words), testing::HasSubstr("--directory"),
                                 testing::Not(testing::HasSubstr(",,")),
                                 testing::Not(testing::HasSubstr("json.exception"))));
    }
  }
}

TEST(JobState, that_may_not_be_looked_at_is_not_absent) {
  const test::TemporaryFolder scratch;
  std::filesystem::create_symlink("job.json", scratch.path() / "job.json");
  EXPECT_THROW(load_state(JobDirectory(scratch.path())), Unavailable);
}

TEST(JobDirectory, is_absolute_and_without_a_slash_at_its_end) {
  EXPECT_EQ(JobDirectory("/a/b/").root(), "/a/b");
  EXPECT_EQ(JobDirectory("runs/x/../y").root(), std::filesystem::current_path() / "runs/y");
}

}  // namespace
}  // namespace muster::local
