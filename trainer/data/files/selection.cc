#include "trainer/data/files/selection.h"

#include "common/error.h"

namespace muster::data {

Selected select(const Selection& selection, uint64_t samples, const std::string& name) {
  const auto selected = spec::select(selection, samples);
  if (const auto* wrong = std::get_if<spec::Unselectable>(&selected)) {
    throw Invalid(name + ": " + wrong->field + ": expected " + wrong->expected + ", found " +
                  wrong->found);
  }
  return std::get<Selected>(selected);
}

}  // namespace muster::data
