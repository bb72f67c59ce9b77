#include "common/job/termination_message.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TerminationMessage, IsReadBackAsItWasWritten) {
  const TerminationMessage message{
      3, "cannot read \"a\\b\": disc \u00e9tait plein", {{"step", 7}, {"loss", "0.5"}}};
  EXPECT_EQ(message.text(),
            "{\"restarts\":3,\"message\":\"cannot read \\\"a\\\\b\\\": disc \u00e9tait plein\","
            "\"progress\":{\"step\":7,\"loss\":\"0.5\"}}");
  EXPECT_EQ(TerminationMessage::parse(message.text() + "\n"), message);
}

TEST(TerminationMessage, BringsTheResultsOfATrainingWhateverElseThereIs) {
  const Json results = {{"weightsDigest", std::string(64, 'a')}, {"step", 7}};
  const std::string line = "first " + std::string(10'000, 'x') + " last";
  const TerminationMessage read =
      TerminationMessage::parse(TerminationMessage{0, line, {{"step", 7}}, results}.text());
  EXPECT_EQ(read.results, results);
  EXPECT_EQ(read.progress, (Json{{"step", 7}}));
  EXPECT_TRUE(read.message.starts_with("first x")) << read.message;
  EXPECT_TRUE(read.message.ends_with("x last")) << read.message;
}

TEST(TerminationMessage, LeavesOutResultsThatDoNotFit) {
  const Json results = {{"checkpoint", std::string(10'000, 'a')}};
  const std::string text = TerminationMessage{0, "done", {{"step", 7}}, results}.text();
  EXPECT_EQ(TerminationMessage::parse(text), (TerminationMessage{0, "done", {{"step", 7}}, {}}));
}

TEST(TerminationMessage, FitsIntoWhatTheKubeletKeepsWhateverItsBytes) {
  for (const char* unit : {"x", "\x01", "\xff", "\u00e9", "\""}) {
    std::string line;
    while (line.size() < 10'000) line += unit;
    const std::string text = TerminationMessage{1, line, {}}.text();
    EXPECT_LE(text.size(), 3072u) << unit;
    EXPECT_GT(TerminationMessage::parse(text).message.size(), 100u) << unit;
  }
}

TEST(TerminationMessage, OfAnotherProgramIsItsLastLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"\n \n", ""},
      {"one", "one"},
      {"one\ntwo \r\n\n", "two"},
      {"{\"restarts\": 1}", "{\"restarts\": 1}"},
      {"{\"restarts\": -1, \"message\": \"x\"}", "x"},
      {"{\"restarts\": 1, \"message\": [1]}", "{\"restarts\": 1, \"message\": [1]}"},
      {"[1]", "[1]"},
      {"starting\n{\"level\":\"error\",\"message\":\"no such file\"}\n", "no such file"}};
  for (const auto& [text, line] : cases)
    EXPECT_EQ(TerminationMessage::parse(text), (TerminationMessage{0, line, {}})) << text;
}

TEST(TerminationMessage, NestedTooDeepIsPlainText) {
  const std::string deep(100'000, '[');
  const std::string closed = deep + std::string(deep.size(), ']');
  const std::string text = "{\"restarts\":1,\"message\":\"m\",\"progress\":" + closed + "}";
  EXPECT_EQ(TerminationMessage::parse(text), (TerminationMessage{0, text, {}}));
}

TEST(TerminationMessage, ACountBeyondAllMeasureIsCut) {
  EXPECT_EQ(
      TerminationMessage::parse("{\"restarts\":18446744073709551615,\"message\":\"\"}").restarts,
      1'000'000);
}

}  // namespace
}  // namespace muster
