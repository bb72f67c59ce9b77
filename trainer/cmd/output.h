#pragma once

#include <string>

#include "common/documents/document.h"

namespace muster::cmd {

// Returns a line "key: value" for each field, for people; fields of an inner object as "key of it:
// value".
std::string fields_text(const Json& object);

// Returns the result of predict_checkpoint() as text: a line for each sample and each object in it.
std::string predictions_text(const Json& predictions);

// Returns the result of predict_pictures() as text: a line for each picture and each object in it.
std::string pictures_text(const Json& predictions);

// Returns an object as JSON for people and programs. Bytes that are no UTF-8, as names of files may
// have, are replaced.
std::string json_text(const Json& object);

}  // namespace muster::cmd
