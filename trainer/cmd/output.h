#pragma once

#include <string>

#include "common/document.h"

namespace muster::cmd {

// "key: value", a line each, for people; what stands in an object as "key of it: value".
std::string fields_text(const Json& object);

// What predict_checkpoint() returns: a line a sample.
std::string predictions_text(const Json& predictions);

}  // namespace muster::cmd
