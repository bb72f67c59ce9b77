#pragma once

#include <string>

#include "common/documents/document.h"

namespace muster::cmd {

// Returns a line "key: value" for each field, for people; a field of an inner object as "key of
// inner object: value".
std::string fields_text(const Json& object);

// Returns the result of predict_checkpoint() as text: a line for each sample and each object in it.
std::string predictions_text(const Json& predictions);

// Returns the result of predict_pictures() as text: a line for each picture and each object in it.
std::string pictures_text(const Json& predictions);

// Returns an object as JSON for people and programs. Bytes that are not UTF-8, for example in file
// names, are replaced.
std::string json_text(const Json& object);

}  // namespace muster::cmd
