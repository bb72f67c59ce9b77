#include "operator/convert/pipeline_text.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "common/error.h"
#include "common/text/byte_order_mark.h"
#include "common/text/utf8.h"

namespace muster::convert {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kDeepest = 32;
constexpr size_t kMostUnknown = 1000;  // most unknown fields that are named

// Keeps the first error of a text, and the fields that are not known.
class Findings : public google::protobuf::io::ErrorCollector {
 public:
  explicit Findings(const std::string& file) : file_(file) {}

  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (error.empty())
      error = fmt::format("{}:{}: column {}: {}", file_, line + 1, column + 1, message);
  }

  // The parser's only warning is: Message type "TYPE" has no field named "FIELD".
  void AddWarning(int line, google::protobuf::io::ColumnNumber,
                  const std::string& message) override {
    const std::string ignored = pipeline::Unknown::descriptor()->full_name();
    if (message.find('"' + ignored + '"') != std::string::npos) return;
    const size_t end = message.rfind('"');
    const size_t begin = end == std::string::npos ? end : message.rfind('"', end - 1);
    if (begin == std::string::npos || unknown.size() >= kMostUnknown) return;
    unknown.push_back(
        fmt::format("{}:{}: {}", file_, line + 1, message.substr(begin + 1, end - begin - 1)));
  }

  std::string error;
  std::vector<std::string> unknown;

 private:
  const std::string& file_;
};

// Returns the text with spaces instead of the commas and semicolons between fields, which have no
// meaning. Published pipelines have such separators, and protobuf's parser (3.21) fails at a
// separator after a field that it does not know. Strings, comments and lists stay unchanged. A byte
// order mark, with which some editors on Windows begin a file, is left out.
std::string without_separators(std::string text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  char quote = 0;
  int lists = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\')
        ++i;
      else if (c == quote || c == '\n')
        quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '[' || c == ']') {
      lists = std::max(0, lists + (c == '[' ? 1 : -1));
    } else if ((c == ',' || c == ';') && lists == 0) {
      text[i] = ' ';
    }
  }
  return text;
}

size_t known_fields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields.size();
}

// A text read as one kind of message.
struct Reading {
  Reading(const PipelineFile& file, std::unique_ptr<Message> kind)
      : message(std::move(kind)), findings(file.name) {
    google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&findings);
    parser.AllowUnknownField(true);
    parser.SetRecursionLimit(kDeepest);
    parser.ParseFromString(without_separators(std::string(without_byte_order_mark(file.text))),
                           message.get());
  }

  std::unique_ptr<Message> message;
  Findings findings;
};

// Returns the reading as the kind whose fields the text has.
std::unique_ptr<Reading> read(const PipelineFile& file) {
  require_utf8(file.text, file.name);
  std::unique_ptr<Reading> best;
  const auto attempt = [&](std::unique_ptr<Message> kind) {
    auto reading = std::make_unique<Reading>(file, std::move(kind));
    if (!best || known_fields(*reading->message) > known_fields(*best->message))
      best = std::move(reading);
  };
  attempt(std::make_unique<pipeline::Pipeline>());
  attempt(std::make_unique<pipeline::Model>());
  attempt(std::make_unique<pipeline::TrainConfig>());
  attempt(std::make_unique<pipeline::InputReader>());
  attempt(std::make_unique<pipeline::EvalConfig>());
  if (!best->findings.error.empty())
    throw Invalid("expected a configuration of the TF Object Detection API, found an error at " +
                  best->findings.error);
  if (known_fields(*best->message) == 0) {
    const auto& unknown = best->findings.unknown;
    throw Invalid(fmt::format(
        "{}: expected a configuration of the TF Object Detection API, a pipeline or its model, "
        "training, evaluation or input, found {}",
        file.name, unknown.empty() ? "no field" : "other fields, the first at " + unknown.front()));
  }
  return best;
}

// Puts the parts of one file into the pipeline.
class Merge {
 public:
  Merge(const std::string& file, pipeline::Pipeline& pipeline) : file_(file), pipeline_(pipeline) {}

  void add(const Message& message) {
    if (const auto* whole = dynamic_cast<const pipeline::Pipeline*>(&message)) return add(*whole);
    if (dynamic_cast<const pipeline::Model*>(&message)) return take("model", message);
    if (dynamic_cast<const pipeline::TrainConfig*>(&message)) return take("train_config", message);
    if (dynamic_cast<const pipeline::EvalConfig*>(&message)) return take("eval_config", message);
    if (!pipeline_.has_train_input_reader()) return take("train_input_reader", message);
    pipeline_.add_eval_input_reader()->CopyFrom(message);
  }

 private:
  void add(const pipeline::Pipeline& whole) {
    if (whole.has_model()) take("model", whole.model());
    if (whole.has_train_config()) take("train_config", whole.train_config());
    if (whole.has_eval_config()) take("eval_config", whole.eval_config());
    if (whole.has_train_input_reader()) take("train_input_reader", whole.train_input_reader());
    pipeline_.mutable_eval_input_reader()->MergeFrom(whole.eval_input_reader());
  }

  void take(const char* part, const Message& message) const {
    const FieldDescriptor* field = pipeline::Pipeline::descriptor()->FindFieldByName(part);
    const auto* reflection = pipeline_.GetReflection();
    if (reflection->HasField(pipeline_, field))
      throw Invalid(file_ + ": expected one " + part + ", found a second one");
    reflection->MutableMessage(&pipeline_, field)->CopyFrom(message);
  }

  const std::string& file_;
  pipeline::Pipeline& pipeline_;
};

}  // namespace

ParsedPipeline parse_pipeline(const std::vector<PipelineFile>& files) {
  ParsedPipeline parsed;
  for (const PipelineFile& file : files) {
    const auto reading = read(file);
    Merge(file.name, parsed.pipeline).add(*reading->message);
    for (std::string& field : reading->findings.unknown) parsed.unknown.push_back(std::move(field));
  }
  return parsed;
}

}  // namespace muster::convert
