#pragma once

#include <string>

#include "common/documents/document.h"

namespace muster {

// Returns a plain scalar with its type, as kubectl's reader types it (go-yaml v2, resolve.go): by
// YAML 1.1 with some changes. `yes`, `on` and `y` are booleans; 0400, 0o400 and 0b1 are octal and
// binary; underscores within a number are ignored; 1:30 and 2001-12-14 are texts; 089 is a decimal
// number, and so is 1e3, which becomes the integer 1000. A number outside int64 becomes the nearest
// float64 if it is decimal, else a text; so does 1e999. Throws Invalid for .inf and .nan, which
// JSON does not have.
Json plain_scalar(const std::string& text);

// Whether `text` is a decimal number outside float64, such as 1e999.
bool is_beyond_numbers(const std::string& text);

}  // namespace muster
