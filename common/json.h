#pragma once

#include <string>
#include <string_view>

#include "common/document.h"

namespace muster {

// Reading JSON that may or may not have been checked: nothing here throws.

// value[key], or null where `value` is no object or has no such member; so calls can be nested.
const Json& member(const Json& value, std::string_view key);

// value[key] if it is of the kind asked for, else `fallback`. Numbers that are integral are
// integers; ones outside int64 are not.
std::string string_or(const Json& value, std::string_view key, std::string fallback);
int64_t integer_or(const Json& value, std::string_view key, int64_t fallback);
double number_or(const Json& value, std::string_view key, double fallback);
bool bool_or(const Json& value, std::string_view key, bool fallback);

}  // namespace muster
