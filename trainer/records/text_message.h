#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace muster::records {

// Reads a message in protobuf's text format; fields that the message does not have are left out.
// Returns "" or the first error, with its line and column. Nothing is printed, and a text that is
// nested too deep is an error: protobuf itself would use up the stack.
std::string parse_text(const std::string& text, google::protobuf::Message& message);

}  // namespace muster::records
