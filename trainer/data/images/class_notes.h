#pragma once

#include <string>
#include <vector>

namespace muster::data {

// Returns a note on the classes without a sample in `where`, because such classes cannot be learned
// or evaluated; nothing if every class has a sample. `seen`: whether each class has a sample.
// `names`: the names of the classes; empty: classes are numbers, and the note then says so if
// labels seem to begin at 1.
std::vector<std::string> notes_of_classes(const std::vector<bool>& seen,
                                          const std::vector<std::string>& names,
                                          const std::string& where);

}  // namespace muster::data
