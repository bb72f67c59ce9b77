#include "trainer/data/files/file_parts.h"

#include <algorithm>
#include <numeric>

namespace muster::data {

std::vector<FilePart> selected_parts(const std::vector<uint64_t>& samples_of_files,
                                     const Selection& selection, const std::string& name) {
  const uint64_t total =
      std::accumulate(samples_of_files.begin(), samples_of_files.end(), uint64_t{0});
  const Selected all = select(selection, total, name);
  std::vector<FilePart> parts;
  uint64_t begin = 0;  // the file's first sample among all samples
  for (size_t file = 0; file < samples_of_files.size(); ++file) {
    const uint64_t end = begin + samples_of_files[file];
    const uint64_t first = std::max(begin, all.first);
    const uint64_t last = std::min(end, all.first + all.count);
    if (first < last) parts.push_back({file, first - begin, last - first});
    begin = end;
  }
  return parts;
}

}  // namespace muster::data
