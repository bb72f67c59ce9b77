#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/tables/preparation.h"
#include "trainer/data/tables/raw_table.h"
#include "trainer/spec/data_source.h"

namespace muster::data {

// What is counted of a column of numbers.
class NumberStatistics {
 public:
  explicit NumberStatistics(bool keeps_all) : keeps_all_(keeps_all) {}
  void add(double number);

  uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  Scaling scaling(spec::Transform transform) const;
  // Returns the different bounds between `buckets` parts of about equally many numbers: that of the
  // first k of n parts is the number at place floor(k count / n) of the sorted numbers. The
  // statistics must keep all numbers.
  std::vector<double> bounds(int64_t buckets);

 private:
  const bool keeps_all_;
  uint64_t count_ = 0;
  // Welford's mean and sum of squared differences, so that one pass over the data is enough.
  double mean_ = 0, squares_ = 0, least_ = 0, most_ = 0;
  std::vector<double> all_;
};

// Computes a preparation from the rows of the training data, which are read with wanted_of().
class Preparing {
 public:
  explicit Preparing(const spec::TableSource& source) : source_(source) {}

  // Adds these of the rows. Throws Invalid for a missing target or weight, and for a vector that is
  // longer or shorter than the others.
  void add(const RawRows& rows, std::span<const uint64_t> chosen);
  // Throws Invalid if nothing is left to learn from.
  Preparation finish();

 private:
  struct Column {
    spec::TableFeature feature;
    PreparedColumn prepared;
    NumberStatistics numbers;
    std::vector<uint64_t> counts;     // of each value
    std::vector<std::string> values;  // as RawColumn has them
    bool is_first = true;
  };

  void begin(const RawRows& rows);
  void count(Column& column, const RawColumn& raw, const RawRows& rows,
             std::span<const uint64_t> chosen);
  static void finish(Column& column);

  const spec::TableSource& source_;
  std::vector<Column> columns_;  // the features, then the targets
  size_t features_ = 0;
};

// Adds the values that are new in these rows to the columns with spare inputs, the most frequent
// first, so that a model goes on with later data.
class Extending {
 public:
  // Columns with one of the names `frozen` stay as they are.
  Extending(Preparation& preparation, const std::vector<std::string>& frozen);

  // Returns the number of columns that may get values.
  size_t columns() const { return static_cast<size_t>(std::ranges::count(grows_, true)); }

  // Adds these of the rows, which are read with preparation.wanted().
  void add(const RawRows& rows, std::span<const uint64_t> chosen);
  void finish();

 private:
  Preparation& preparation_;
  std::vector<bool> grows_;                       // by column
  std::vector<std::vector<uint64_t>> counts_;     // by column: of each value
  std::vector<std::vector<std::string>> values_;  // by column: as RawColumn has them
};

}  // namespace muster::data
