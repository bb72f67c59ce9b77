#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

namespace muster::records {

enum class UnknownFields { left_out, refused };

// Reads a message in protobuf's text format, behind a byte-order mark if there is one; what becomes
// of fields that the message does not have is the caller's choice. Returns "" or the first error,
// with its line and column. `places`, if given, receives where each field is. Nothing is printed,
// and a text that is nested too deep is an error: protobuf itself would use up the stack.
std::string parse_text(std::string_view text, google::protobuf::Message& message,
                       UnknownFields unknown = UnknownFields::left_out,
                       google::protobuf::TextFormat::ParseInfoTree* places = nullptr);

}  // namespace muster::records
