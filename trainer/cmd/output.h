#pragma once

#include <string>

#include "common/document.h"

namespace muster::cmd {

// Returns a line "key: value" for each field, for people; fields of an inner object as "key of it:
// value".
std::string fields_text(const Json& object);

// Returns the result of predict_checkpoint() as text, one line for each sample.
std::string predictions_text(const Json& predictions);

}  // namespace muster::cmd
