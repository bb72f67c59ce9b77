#include "trainer/records/text_message.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

namespace muster::records {

namespace {

constexpr int kDeepest = 32;

// Keeps the first error of a text; protobuf would print it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text.empty()) text = fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}

  std::string text;
};

}  // namespace

std::string parse_text(const std::string& text, google::protobuf::Message& message) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kDeepest);
  if (parser.ParseFromString(text, &message)) return "";
  return error.text.empty() ? "a text that cannot be read" : error.text;
}

}  // namespace muster::records
