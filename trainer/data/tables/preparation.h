#pragma once

#include <cstdint>
#include <optional>
#include <span>
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
};

// A column as the inputs that it becomes.
struct PreparedColumn {
  std::string name;
  bool is_category = false;
  // Of numbers.
  Scaling scaling;
  double missing = 0;  // what stands for a missing number
  bool flags_missing = false;
  // Of a category: the values with an input of their own. One more input is for all others.
  std::vector<std::string> values;

  size_t inputs() const;
};

// What the training data decide of how rows become samples. It is kept with the model.
struct Preparation {
  std::vector<PreparedColumn> columns;
  std::string target;
  bool target_is_class = true;
  Scaling target_scaling;            // of a number
  std::vector<std::string> classes;  // of classes, in order

  int64_t inputs() const;
  // The columns to read of other data. `with_target`: the target too, as the last one.
  Wanted wanted(bool with_target) const;
};

// Returns the columns that the training data must have.
Wanted wanted_of(const spec::TableSource& source);

// Computes the preparation from these rows of the training data, read with wanted_of(). Throws
// Invalid if a target is missing, or if nothing is left to learn from.
Preparation prepare(const spec::TableSource& source, const RawTable& table,
                    std::span<const uint64_t> rows);

// Writes the inputs of these rows, one row after the other; `table` was read with
// preparation.wanted(). Throws Invalid for a number that is too large for a float.
void write_inputs(const Preparation& preparation, const RawTable& table,
                  std::span<const uint64_t> rows, std::span<float> inputs);

// Return the targets of these rows. Throw Invalid, naming file and line, for a missing target and a
// class that the training data do not have.
std::vector<int32_t> class_targets(const Preparation& preparation, const RawTable& table,
                                   std::span<const uint64_t> rows);
std::vector<float> number_targets(const Preparation& preparation, const RawTable& table,
                                  std::span<const uint64_t> rows);

Json to_json(const Preparation& preparation);
// Reads the result of to_json(). Throws Invalid, beginning with `where`, for anything else.
Preparation parse_preparation(const Json& json, const std::string& where);

}  // namespace muster::data
