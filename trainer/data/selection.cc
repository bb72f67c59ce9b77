#include "trainer/data/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/error.h"

namespace muster::data {
namespace {

Selected split(Selected whole, double fraction, spec::SplitPart part, const std::string& name) {
  const double border =
      std::floor(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(whole.count));
  const uint64_t first = std::min(static_cast<uint64_t>(border), whole.count);
  Selected out = part == spec::SplitPart::first
                     ? Selected{whole.first, first}
                     : Selected{whole.first + first, whole.count - first};
  if (out.count == 0) {
    throw Invalid(fmt::format("{}: split fraction {} of {} samples leaves this part none", name,
                              fraction, whole.count));
  }
  return out;
}

}  // namespace

Selection Selection::of(const spec::DataSource& source) {
  return {source.skip, source.take, source.split_fraction, source.split_part};
}

Selected select(const Selection& selection, uint64_t samples, const std::string& name) {
  const uint64_t skip = static_cast<uint64_t>(std::max<int64_t>(selection.skip, 0));
  if (skip >= samples) {
    throw Invalid(fmt::format("{}: skip {} leaves none of its {} samples", name, skip, samples));
  }
  const uint64_t rest = samples - skip;
  const uint64_t take = selection.take < 0 ? rest : static_cast<uint64_t>(selection.take);
  if (take > rest || take == 0) {
    throw Invalid(
        fmt::format("{}: expected take to be from 1 to {} ({} samples, {} skipped), found {}", name,
                    rest, samples, skip, take));
  }
  if (!selection.fraction) return {skip, take};
  return split({skip, take}, *selection.fraction, selection.part, name);
}

}  // namespace muster::data
