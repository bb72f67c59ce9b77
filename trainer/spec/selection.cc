#include "trainer/spec/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::spec {

namespace {

std::variant<Selected, Unselectable> split(Selected whole, double fraction, SplitPart part) {
  const double border =
      std::floor(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(whole.count));
  const uint64_t first = std::min(static_cast<uint64_t>(border), whole.count);
  const bool rest = part == SplitPart::rest;
  const Selected out =
      rest ? Selected{whole.first + first, whole.count - first} : Selected{whole.first, first};
  if (out.count > 0) return out;
  return Unselectable{
      "split", fmt::format("a part with at least one of {} samples", whole.count),
      fmt::format("none in the {} part of fraction {}", rest ? "rest" : "first", fraction)};
}

}  // namespace

Selection Selection::of(const DataSource& source) {
  return {source.skip, source.take, source.split_fraction, source.split_part};
}

std::variant<Selected, Unselectable> select(const Selection& selection, uint64_t samples) {
  if (samples == 0) return Unselectable{"samples", "at least 1", "0"};
  const uint64_t skip = static_cast<uint64_t>(std::max<int64_t>(selection.skip, 0));
  if (skip >= samples) {
    return Unselectable{"skip", fmt::format("less than its {} samples", samples),
                        std::to_string(skip)};
  }
  const uint64_t rest = samples - skip;
  const uint64_t take = selection.take < 0 ? rest : static_cast<uint64_t>(selection.take);
  if (take > rest || take == 0) {
    return Unselectable{"take",
                        fmt::format("from 1 to {} ({} samples, {} skipped)", rest, samples, skip),
                        std::to_string(take)};
  }
  const Selected taken{skip, take};
  if (!selection.fraction) return taken;
  return split(taken, *selection.fraction, selection.part);
}

}  // namespace muster::spec
