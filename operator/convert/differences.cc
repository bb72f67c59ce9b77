#include "operator/convert/differences.h"

#include <google/protobuf/text_format.h>

#include <memory>

namespace muster::convert {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

std::string text_of(const Message& message, const FieldDescriptor* field, int index = -1) {
  std::string text;
  TextFormat::PrintFieldValueToString(message, field, index, &text);
  return text;
}

std::string list_of(const Message& message, const FieldDescriptor* field) {
  std::string text;
  const int size = message.GetReflection()->FieldSize(message, field);
  for (int i = 0; i < size; ++i) text += (i > 0 ? ", " : "") + text_of(message, field, i);
  return "[" + text + "]";
}

class Comparison {
 public:
  explicit Comparison(std::vector<Difference>& found) : found_(found) {}

  void compare(const std::string& path, const Message& given, const Message& wanted) {
    const auto* type = given.GetDescriptor();
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      const std::string child = path + "." + field->name();
      if (field->is_repeated())
        report(child, list_of(given, field), list_of(wanted, field));
      else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
        compare_messages(child, field, given, wanted);
      else
        report(child, text_of(given, field), text_of(wanted, field));
    }
  }

 private:
  void report(const std::string& path, const std::string& given, const std::string& wanted) {
    if (given != wanted) found_.push_back({path, given, wanted});
  }

  void compare_messages(const std::string& path, const FieldDescriptor* field, const Message& given,
                        const Message& wanted) {
    const auto* reflection = given.GetReflection();
    const bool has = reflection->HasField(given, field);
    const bool wants = reflection->HasField(wanted, field);
    if (!has && !wants) return;
    const Message& mine = reflection->GetMessage(given, field);
    const Message& theirs = reflection->GetMessage(wanted, field);
    const auto* choice = field->containing_oneof();
    const bool chosen_otherwise = choice != nullptr && has != wants &&
                                  reflection->HasOneof(given, choice) &&
                                  reflection->HasOneof(wanted, choice);
    if (chosen_otherwise) {  // reported once, at the one that is given
      if (has)
        found_.push_back(
            {path, field->name(), reflection->GetOneofFieldDescriptor(wanted, choice)->name()});
      return;
    }
    const size_t before = found_.size();
    compare(path, mine, theirs);
    if (has == wants || found_.size() == before) return;
    found_.resize(before);
    found_.push_back(
        {path, has ? mine.ShortDebugString() : "", wants ? theirs.ShortDebugString() : ""});
  }

  std::vector<Difference>& found_;
};

}  // namespace

std::vector<Difference> differences(const std::string& path, const Message& given,
                                    const Message& wanted) {
  std::vector<Difference> found;
  Comparison(found).compare(path, given, wanted);
  return found;
}

}  // namespace muster::convert
