#include "common/documents/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/documents/documents.h"
#include "common/error.h"
#include "common/system/file.h"
#include "tests/unit/common/error_of.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string parse_error(std::string_view text) {
  try {
    Document::parse(text, "job.yaml");
  } catch (const Invalid& error) {
    return error.what();
  }
  return "nothing thrown";
}

// The table has what kubectl makes of each scalar, as JSON; "error" where it refuses it. An
// integration test puts the same table to kubectl.
TEST(Document, TypesScalarsAsKubectlDoes) {
  std::istringstream table(read_file(MUSTER_SOURCE_DIR "/tests/fixtures/scalars/scalars.tsv"));
  int cases = 0;
  for (std::string line; std::getline(table, line); ++cases) {
    const size_t tab = line.find('\t');
    const std::string scalar = line.substr(0, tab), expected = line.substr(tab + 1);
    std::string found = "error";
    try {
      found = Document::parse("a: " + scalar, "x").value()["a"].dump();
    } catch (const Malformed&) {
    }
    const Json number = Json::parse(expected, nullptr, /*allow_exceptions=*/false);
    if (number.is_number_float() || number.is_number_unsigned()) {
      EXPECT_EQ(Json::parse(found).get<double>(), number.get<double>()) << scalar;
      EXPECT_EQ(found.find('"'), found.npos) << scalar;
    } else {
      EXPECT_EQ(found, expected == "error" ? expected : number.dump()) << scalar;
    }
  }
  EXPECT_GT(cases, 150);
}

TEST(Document, TypesValuesInItsPlaces) {
  const struct {
    const char* yaml;
    const char* json;
  } cases[] = {
      {"", "null"},
      {"\"12\"", "\"12\""},
      {"'true'", "\"true\""},
      {"\"\\x01\\xa0\"", "\"\\u0001\u00a0\""},
      {"!!str 12", "\"12\""},
      {"[1, {a: b}]", "[1,{\"a\":\"b\"}]"},
      {"\xef\xbb\xbf[0400]", "[256]"},
  };
  for (const auto& item : cases)
    EXPECT_EQ(Document::parse(item.yaml, "x").value().dump(), item.json) << item.yaml;
}

TEST(Document, RefusesWhatItSaysItRefuses) {
  const struct {
    std::string yaml;
    const char* message;
  } cases[] = {
      {"a: 1\na: 2", "job.yaml:2:1: expected each field once, found 'a' again"},
      {"a: *x", "job.yaml:1:4"},
      {"a: !custom 1", "tag !custom"},
      {"a: 1\n---\nb: 2", "expected one document"},
      {"[1]: 2", "as a key"},
      {"a: {on: 1}", "job.yaml:1:5: expected a field's name, found on, which is a boolean in YAML"},
      {"12: 1",
       "expected a field's name, found 12, which is a number in YAML; put it between quotes"},
      {"a: -.inf", "job.yaml:1:4: expected a value, found -.inf, which JSON does not have"},
      {"~: 2", "a field's name"},
      {"a: [1", "job.yaml:"},
      {", x", "job.yaml:1:1: expected one document"},
      {"]", "job.yaml:1:1: expected a value, found a closing ']' or '}' that nothing opened"},
      {"a: 1\n---\n---\n---\n", "job.yaml:3:1: expected one document"},
      {"a: b: c", "job.yaml:1:"},
      {std::string("a: \xff"), "job.yaml:1: expected UTF-8 text, found the byte 255 at offset 3"},
      {std::string("a: \xed\xa0\x80"), "UTF-8"},
      {std::string("a: \xc0\x80"), "UTF-8"},
      {std::string("a\0b", 3), "expected text without control characters, found the byte 0"},
      {"a: \"\\0\"", "NUL"},
      {"a: \"b\\_c\"", "job.yaml:1:4: expected text, found the escape"},
      {"\"\\N\": 1", "write \\x85"},
      {"? " + std::string(2000, 'k') + "\n: 1", "1024 bytes"},
      {std::string(65, '[') + std::string(65, ']'), "64 levels"},
      {"a:\n" + std::string(size_t{3} << 20, '['), "job.yaml:2: expected at most 64 levels"},
      {std::string((size_t{4} << 20) + 1, ' '), "4 MiB"},
  };
  for (const auto& item : cases) {
    EXPECT_THAT(parse_error(item.yaml), HasSubstr(item.message)) << item.yaml.substr(0, 40);
  }
}

TEST(Document, SaysInPlainWordsWhatIsNoYaml) {
  const struct {
    const char* yaml;
    const char* message;
  } cases[] = {
      {"a: b: c", "job.yaml:1:5: expected one value for a field, found another ':'"},
      {"a: 1\n  b: 2", "job.yaml:2:4: expected one value for a field"},
      {"a:\n  b: 1\n c: 2", "job.yaml:3:2: expected fields all at one indentation"},
      {"a: - 1", "job.yaml:1:4: expected the entries of a list on lines of their own"},
      {"a:\n  - 1\n  b: 2", "job.yaml:3:3: expected fields all at one indentation"},
      {"a: [1, 2",
       "job.yaml:1:9: expected ',' or the closing ']' of the list that begins on line 1, found "
       "the end of the "
       "text"},
      {"a: 1\nb: [1, \"]\", # ]\n  2\nc: 3",
       "expected ',' or the closing ']' of the list that begins on line 2, found neither before "
       "this place"},
      {"[1, 2", "job.yaml:1:1: expected ',' or the closing ']' of the list that begins on line 1"},
      {"{a: {b: 1}", "job.yaml:1:1: expected ',' or the closing '}' of the object that begins on"},
      {"a: {b: 1", "expected ',' or the closing '}' of the object that begins on line 1"},
      {"a: x[\nb: {c: [1, 2}",
       "job.yaml:2:13: expected ',' or the closing ']' of the list that "
       "begins on line 2"},
      {"a: \"b", "expected a closing quote, found the end of the text"},
      {"a: 'b\n---\n'", "expected a closing quote, found the document's end"},
      {"a: 'c'\nb:\n  - \"echo hello\n",
       "job.yaml:3:5: expected a closing quote of the text that begins here, found the end of the "
       "text"},
      {"a: b\nc: 'it''s\nd: e\n", "job.yaml:2:4: expected a closing quote"},
      {"a: \"b\\\"\n", "job.yaml:1:4: expected a closing quote"},
      {"a:\n\tb: 1", "expected spaces as indentation, found a tab"},
      {"a: @b", "a character that cannot begin one"},
      {"a: \"\\q\"", "job.yaml:1:7: expected an escape such as"},
      {"a: \"\\xzz\"", "expected hexadecimal digits"},
      {"a: |x\n  b", "expected the text of | or > on the lines below it"},
      {"a: |0\n  b", "expected an indentation of 1 to 9 after | or >"},
      {"a: *", "expected a name after *, found none"},
      {"a: &", "expected a name after &, found none"},
      {"a: *b", "job.yaml:1:4: expected an anchor (&name) before its alias (*name)"},
  };
  for (const auto& item : cases) {
    EXPECT_THAT(parse_error(item.yaml), HasSubstr(item.message)) << item.yaml;
  }
}

TEST(Document, WhatIsNoDocumentSaysWhereInParts) {
  try {
    Document::parse("a: 1\na: 2", "job.yaml");
    FAIL();
  } catch (const Malformed& error) {
    EXPECT_EQ(error.where(), "job.yaml:2:1");
    EXPECT_EQ(error.expected(), "each field once");
    EXPECT_EQ(error.found(), "'a' again");
  }
}

TEST(Document, LimitsTheNumberOfValues) {
  std::string yaml = "[";
  for (int i = 0; i < 100000; ++i) yaml += "1,";
  EXPECT_THAT(parse_error(yaml + "]"), HasSubstr("at most 100000 values"));
}

TEST(Document, AcceptsSixtyFourLevelsAndAClosingMark) {
  EXPECT_NO_THROW(Document::parse(std::string(64, '[') + std::string(64, ']'), "x"));
  EXPECT_EQ(Document::parse("---\na: 1\n---\n", "x").value().dump(), "{\"a\":1}");
}

TEST(Document, LocatesAPathOrItsNearestParent) {
  const Document document =
      Document::parse("a: 1\nb:\n  c:\n    - 1\n    - d: 2\n      e.f: 3\n", "j");
  EXPECT_EQ(document.locate("a"), "j:1");
  EXPECT_EQ(document.locate("b.c[1].d"), "j:5");
  EXPECT_EQ(document.locate("b.c[1][\"e.f\"]"), "j:6");
  EXPECT_EQ(document.locate("b.c[7].x.y"), "j:3");
  EXPECT_EQ(document.locate("b.none"), "j:2");
  EXPECT_EQ(document.locate(""), "j:1");
  EXPECT_EQ(document.line("b.c[1].d"), 5);
}

TEST(Document, SetsByPathAndSaysWhereTheValueCameFrom) {
  Document document = Document::parse("a: {b: 1}\nlist: [1]\n", "j");
  document.set("a.b", "2");
  document.set("c.d.e", "[1, x]");
  document.set("list[1]", "text");
  document.set("list[0]", "");
  EXPECT_EQ(document.value().dump(),
            R"({"a":{"b":2},"list":[null,"text"],"c":{"d":{"e":[1,"x"]}}})");
  EXPECT_EQ(document.locate("a"), "j:1");
  EXPECT_EQ(document.locate("a.b"), "j (--set)");
  EXPECT_EQ(document.locate("c.d.e[1]"), "j (--set)");
  EXPECT_EQ(document.line("c.d.e[1]"), 0);
}

TEST(Document, LeadsToTheTextOfWhatItWasMadeFrom) {
  const Document original = Document::parse("spec:\n  types:\n    Worker:\n      x: 1\n", "j");
  Document made = Document::of(Json::parse(R"({"spec":{"roles":{"worker":{"x":1},"workers":{}}}})"),
                               original, {{"spec.roles.worker", "spec.types.Worker"}});
  EXPECT_EQ(made.path_in_text("spec.roles.worker.x"), "spec.types.Worker.x");
  EXPECT_EQ(made.path_in_text("spec.roles.worker[1]"), "spec.types.Worker[1]");
  EXPECT_EQ(made.path_in_text("spec.roles.workers"), "spec.roles.workers");
  EXPECT_EQ(made.path_in_text("spec"), "spec");
  EXPECT_EQ(made.locate("spec.roles.worker.x"), "j:4");
  EXPECT_EQ(made.locate("spec.roles.workers"), "j:1");
  made.set("spec.roles.worker.x", "2");
  EXPECT_EQ(made.locate("spec.roles.worker.x"), "j (--set)");
  EXPECT_EQ(made.path_in_text("spec.roles.worker.x"), "spec.roles.worker.x");
  EXPECT_EQ(made.value().dump(), R"({"spec":{"roles":{"worker":{"x":2},"workers":{}}}})");
}

TEST(Document, RefusesToSetThroughAScalarAndLeavesNothingBehind) {
  Document document = Document::parse("a: 1\nl: [1]", "j");
  const std::string before = document.value().dump();
  for (const char* path :
       {"a.b", "l[3]", "l.x", "a[0]", "", ".a", "a..b", "a[", "a[x]", "a[\"b", "new.x[1]"}) {
    EXPECT_THROW(document.set(path, "2"), Invalid) << path;
  }
  EXPECT_EQ(test::error_of([&] { document.set("a", "[1"); }),
            "expected ',' or the closing ']' of the list, found the end of the text");
  EXPECT_EQ(document.value().dump(), before);
}

TEST(Document, PathsOfStrangeKeysComeBack) {
  for (const std::string key : {"a", "a.b/c", "[2]", "", "x=y", "a\"]b", "\"", "a\\\"]", "\\."}) {
    const std::string path = child_path(child_path("top", key), size_t{3});
    EXPECT_EQ(split_path(path), (std::vector<std::string>{"top", key, "[3]"})) << path;
  }
}

TEST(Document, LoadNamesAFileThatIsMissingOrNotAFile) {
  EXPECT_THROW(Document::load("/nonexistent/job.yaml"), Invalid);
  EXPECT_THROW(Document::load("/"), Invalid);
}

std::string all_of(const std::string& text) {
  std::string values;
  for (const Document& document : parse_documents(text, "all.yaml"))
    values += document.value().dump() + " " + document.locate("a") + "\n";
  return values;
}

TEST(Documents, AreThePartsBetweenSeparatorsAndTheItemsOfLists) {
  const struct {
    const char* text;
    const char* documents;
  } cases[] = {
      {"a: 1", "{\"a\":1} all.yaml:1\n"},
      {"---\na: 1\n---\n# nothing\n--- # a comment\n\na: 2\n---\n",
       "{\"a\":1} all.yaml:2\n{\"a\":2} all.yaml:7\n"},
      {"\xef\xbb\xbf---\r\na: 1\r\n---\r\na: 2\r\n",
       "{\"a\":1} all.yaml:2\n{\"a\":2} all.yaml:4\n"},
      {"kind: List\napiVersion: v1\nitems:\n- a: 1\n-\n- a: 2\n---\na: 3",
       "{\"a\":1} all.yaml:4\n{\"a\":2} all.yaml:6\n{\"a\":3} all.yaml:8\n"},
      {"", "null all.yaml\n"},
      {"---\n---\n", "null all.yaml\n"},
  };
  for (const auto& item : cases) EXPECT_EQ(all_of(item.text), item.documents) << item.text;
}

TEST(Documents, AreNotCountedForEver) {
  std::string text;
  while (text.size() < (size_t{4} << 20) - 4) text += "---\n";
  EXPECT_THAT(test::error_of([&] { parse_documents(text, "all.yaml"); }),
              HasSubstr("all.yaml: expected at most 10000 documents, empty ones included"));
}

TEST(Documents, NameTheLineOfWhatIsWrong) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"a: 1\n---\nb: 2\nb: 3", "all.yaml:4:1: expected each field once"},
      {"a: 1\n--- b\nc: 2", "all.yaml:2: expected nothing but a comment after ---"},
      {"a: 1\n---\n\x01", "all.yaml:3: expected text without control characters"},
      {"a: 1\n---\nb: [", "all.yaml:3:"},
      {"kind: List\napiVersion: v1\n",
       "all.yaml:1: expected a list of objects in the field items of a List, found none"},
      {"a: 1\n---\nkind: List\napiVersion: v1\nitems: {b: 1}",
       "all.yaml:5: expected a list of objects in the field items of a List, found an object"},
      {"a: 1\n---\ncaf\xe9: 1", "all.yaml:3: expected UTF-8 text, found the byte 233 at offset 3"},
  };
  for (const auto& item : cases) {
    try {
      parse_documents(item.text, "all.yaml");
      ADD_FAILURE() << item.text;
    } catch (const Malformed& error) {
      EXPECT_THAT(error.what(), HasSubstr(item.message)) << item.text;
    }
  }
}

}  // namespace
}  // namespace muster
