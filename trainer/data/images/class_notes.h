#pragma once

#include <string>
#include <vector>

namespace muster::data {

// Returns a note of the classes of which there is no sample in `where`, since they cannot be
// learned or judged; nothing if each has one. `seen`: whether a class has a sample. `names`: of the
// classes; empty: they are numbers, and then labels from 1 on, as by others who count so, are named
// as such.
std::vector<std::string> notes_of_classes(const std::vector<bool>& seen,
                                          const std::vector<std::string>& names,
                                          const std::string& where);

}  // namespace muster::data
