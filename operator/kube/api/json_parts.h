#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::kube {

// JSON texts by their brackets and quotes alone: what is within them need not be right, and may be
// nested however deep.

// A member of an object, or an element of a list.
struct JsonPart {
  std::string_view key;   // as it is written, between its quotes; "" of an element
  std::string_view text;  // never empty
};
// Those of the object or list that `json` is, in order, as views of it. Throws Unavailable where it
// is neither, or is cut off.
std::vector<JsonPart> parts_of(std::string_view json);

// The same text, but for integers that neither int64 nor uint64 holds, which are written as doubles
// (100000000000000000000e0). Go writes a double below 1e21 as such an integer.
std::string with_large_integers_as_doubles(std::string_view json);

}  // namespace muster::kube
