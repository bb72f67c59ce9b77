#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

namespace muster::records {

enum class UnknownFields { left_out, refused };

// Reads a message in protobuf's text format; a byte-order mark at the beginning is skipped.
// `unknown` says what happens to fields that the message does not have. Returns "" or the first
// error, with line and column. `places`, if given, receives the place of each field. Prints
// nothing. A text that is nested too deep is an error, because protobuf itself would overflow the
// stack.
std::string parse_text(std::string_view text, google::protobuf::Message& message,
                       UnknownFields unknown = UnknownFields::left_out,
                       google::protobuf::TextFormat::ParseInfoTree* places = nullptr);

}  // namespace muster::records
