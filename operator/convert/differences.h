#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <string>
#include <vector>

namespace muster::convert {

// A field in which a message differs from another.
struct Difference {
  std::string path;   // "model.ssd.loss.classification_weight"
  std::string given;  // the field's value in the text format, or its default if it is left out; ""
                      // for a message that is left out
  // The field's value in the other message; "" for a message that is left out there.
  std::string wanted;
};

// Compares two messages of one type field by field. A field that is left out has its default value;
// a message that is left out equals one with only default values. `path` is the path of the two
// messages.
std::vector<Difference> differences(const std::string& path, const google::protobuf::Message& given,
                                    const google::protobuf::Message& wanted);

}  // namespace muster::convert
