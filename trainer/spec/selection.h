#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "trainer/spec/training_spec.h"

namespace muster::spec {

// The wanted samples of a source: the first `skip` are left out, then `take` are taken (-1: the
// rest), and of these n samples the first floor(fraction n) or the others.
struct Selection {
  int64_t skip = 0;
  int64_t take = -1;
  std::optional<double> fraction = {};
  SplitPart part = SplitPart::first;

  static Selection of(const DataSource& source);
};

struct Selected {
  uint64_t first = 0;
  uint64_t count = 0;  // at least 1
};

// The reason why nothing can be selected.
struct Unselectable {
  std::string field;     // "skip", "take" or "split"
  std::string expected;  // "from 1 to 60, for there are 100 samples and 40 are skipped"
  std::string found;
};

// Applies the selection to a source of `samples` samples.
std::variant<Selected, Unselectable> select(const Selection& selection, uint64_t samples);

}  // namespace muster::spec
