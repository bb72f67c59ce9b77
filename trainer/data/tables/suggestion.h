#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/spec/data_source.h"

namespace muster::data {

// A manifest that trains on a table at once.
struct Suggestion {
  std::string manifest;            // YAML
  std::vector<std::string> notes;  // what it leaves out, and why
};

// `muster data suggest`: decides what the target is, which columns can help, the layers, the loss,
// and which rows train, validate and test. `named` is the file as the manifest names it. Throws
// Invalid.
Suggestion suggest(const std::filesystem::path& file, const std::string& named,
                   const spec::TableFormat& format, const std::string& target);

}  // namespace muster::data
