#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/spec/training_spec.h"

namespace muster::data {

// Which samples of a source are wanted: the first `skip` are left out, then `take` (-1: the rest),
// and of these, n samples, the first floor(fraction n) or those after them.
struct Selection {
  int64_t skip = 0;
  int64_t take = -1;
  std::optional<double> fraction = {};
  spec::SplitPart part = spec::SplitPart::first;

  static Selection of(const spec::DataSource& source);
};

struct Selected {
  uint64_t first = 0;
  uint64_t count = 0;  // at least 1
};

// Applied to `samples` samples of `name`. Throws Invalid naming the field, what was expected and
// found, where that is beyond the end or leaves nothing.
Selected select(const Selection& selection, uint64_t samples, const std::string& name);

}  // namespace muster::data
