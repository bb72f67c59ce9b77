#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::kube {

// Splits JSON texts by their brackets and quotes alone: the parts need not be well-formed, and may
// be nested to any depth.

// A member of an object, or an element of a list.
struct JsonPart {
  std::string_view key;   // the key as written, without its quotes; "" for an element
  std::string_view text;  // never empty
};
// Returns the parts of the object or list `json`, in order, as views of it. Throws Unavailable if
// `json` is neither, or is cut off.
std::vector<JsonPart> parts_of(std::string_view json);

// Returns the same text, in which integers that neither int64 nor uint64 can hold are written as
// doubles (100000000000000000000e0). Go writes a double below 1e21 as such an integer.
std::string with_large_integers_as_doubles(std::string_view json);

}  // namespace muster::kube
