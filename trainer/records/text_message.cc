#include "trainer/records/text_message.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>

#include "common/text/byte_order_mark.h"

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

std::string parse_text(std::string_view text, google::protobuf::Message& message,
                       UnknownFields unknown, google::protobuf::TextFormat::ParseInfoTree* places) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.AllowUnknownField(unknown == UnknownFields::left_out);
  parser.SetRecursionLimit(kDeepest);
  if (places != nullptr) parser.WriteLocationsTo(places);
  text = without_byte_order_mark(text);
  if (text.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return fmt::format("a text of {} bytes, which is too large", text.size());
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&stream, &message)) return "";
  return error.text.empty() ? "a text that cannot be read" : error.text;
}

}  // namespace muster::records
