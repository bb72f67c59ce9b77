#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/data/tables/preparation.h"
#include "trainer/data/tables/raw_table.h"

namespace muster::data {

// A row of a block, and the sample that it becomes.
struct PlacedRow {
  uint64_t row = 0;
  uint64_t sample = 0;
};

// Returns the weight of a row. Throws Invalid, naming file and line, for a missing or negative one.
float weight_of(const RawRows& rows, const RawColumn& weights, uint64_t row);

// Makes samples of rows. The rows must come from one reader, which has read preparation.wanted().
class RowWriter {
 public:
  // `preparation` must live as long as the writer.
  explicit RowWriter(const Preparation& preparation);

  // Writes the inputs of these rows: those of sample n begin at n * preparation.inputs(). Throws
  // Invalid for a number that is too large for a float, and a vector of another length.
  void write_inputs(const RawRows& rows, std::span<const PlacedRow> placed, float* inputs);

  // Writes the targets of these rows: the class of sample n, or its numbers, which begin at
  // n * preparation.targets.size(). Throw Invalid, naming file and line, for a missing target and a
  // class that the training data do not have.
  void write_classes(const RawRows& rows, std::span<const PlacedRow> placed, int32_t* classes);
  void write_targets(const RawRows& rows, std::span<const PlacedRow> placed, float* targets) const;

 private:
  // The place of each value of a RawColumn among the inputs of its column, or among the classes.
  struct Places {
    std::unordered_map<std::string, int32_t> known;
    std::vector<int32_t> of_value;
  };

  void find_places(const RawColumn& raw, Places& places, int32_t other,
                   uint64_t hash_buckets) const;
  void write_column(size_t number, const RawRows& rows, std::span<const PlacedRow> placed,
                    float* to);

  const Preparation& preparation_;
  const uint64_t stride_;
  std::vector<Places> places_;  // by column
  Places classes_;
};

}  // namespace muster::data
