#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <string>
#include <vector>

namespace muster::convert {

// A field in which a message differs from another.
struct Difference {
  std::string path;    // "model.ssd.loss.classification_weight"
  std::string given;   // its value in the text format, the default where it is left out; "" for a
                       // message that is left out
  std::string wanted;  // the same of the other; "" for a message that the other does not have
};

// Compares two messages of one type field by field. A field that is left out has its default value;
// a message that is left out and one with nothing but defaults are the same. `path` is that of the
// messages.
std::vector<Difference> differences(const std::string& path, const google::protobuf::Message& given,
                                    const google::protobuf::Message& wanted);

}  // namespace muster::convert
