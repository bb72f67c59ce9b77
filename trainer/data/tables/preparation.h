#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "trainer/data/tables/raw_table.h"
#include "trainer/spec/data_source.h"

namespace muster::data {

// A number x as the model takes it: (f(x) - offset) * factor, where f is the logarithm or nothing.
struct Scaling {
  bool is_log = false;
  double offset = 0, factor = 1;

  double apply(double number) const;
  double undo(double scaled) const;
  bool operator==(const Scaling&) const = default;
};

// A column as the inputs that it becomes.
struct PreparedColumn {
  std::string name;
  FeatureKind kind = FeatureKind::number;
  std::string separator;  // of several in a text

  // Of numbers and vectors, in the order in which they are applied.
  double missing = 0;                 // what stands for a missing number
  bool flags_missing = false;         // one more input is 1 for a missing number; not of a vector
  std::optional<double> least, most;  // a number beyond them is replaced by them
  // With bounds, each interval has an input of its own: below the first bound, from it up to the
  // second, and so on. Else the number is scaled.
  std::vector<double> bounds;
  Scaling scaling;
  uint64_t length = 1;  // numbers of a vector

  // Of one or several categories.
  std::vector<std::string> values;  // with an input of their own; then one input for all others
  uint64_t spare_values = 0;        // inputs for values that later training data bring
  uint64_t hash_buckets = 0;        // not 0: a value's input is its hash modulo this number

  bool is_category() const {
    return kind == FeatureKind::category || kind == FeatureKind::categories;
  }
  size_t inputs() const;
  double clipped(double number) const;
};

// What the training data decide of how rows become samples. It is kept with the model.
struct Preparation {
  std::vector<PreparedColumn> columns;
  std::vector<std::string> targets;  // one, or several numbers
  bool target_is_class = true;
  std::vector<Scaling> target_scalings;  // of each target, if they are numbers
  std::vector<std::string> classes;      // of classes, in order
  std::string files;                     // names the data that it comes from; changes with them

  int64_t inputs() const;
  // The columns to read of other data. `with_target`: the targets too, as the last ones.
  Wanted wanted(bool with_target) const;
};

// Returns the columns that the training data must have; the targets are the last ones.
Wanted wanted_of(const spec::TableSource& source);

Json to_json(const Preparation& preparation);
// Reads the result of to_json(). Throws Invalid, beginning with `where`, for anything else.
Preparation parse_preparation(const Json& json, const std::string& where);

}  // namespace muster::data
