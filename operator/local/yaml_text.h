#pragma once

#include <string>

#include "common/documents/document.h"

namespace muster::local {

// Returns a block-style YAML text that Document::parse reads back as `value`.
std::string to_yaml(const Json& value);

}  // namespace muster::local
