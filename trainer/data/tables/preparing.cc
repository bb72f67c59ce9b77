#include "trainer/data/tables/preparing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <utility>

#include "common/error.h"
#include "trainer/data/tables/row_writer.h"

namespace muster::data {
namespace {

using spec::Transform;

// Counts the values of these rows.
void count_values(const RawColumn& raw, std::span<const uint64_t> chosen,
                  std::vector<uint64_t>& counts, std::vector<std::string>& values) {
  values.insert(values.end(), raw.values.begin() + static_cast<std::ptrdiff_t>(values.size()),
                raw.values.end());
  counts.resize(values.size());
  const auto count = [&](int32_t cell) {
    if (cell >= 0) ++counts[static_cast<size_t>(cell)];
  };
  for (const uint64_t row : chosen) {
    if (!raw.has_lists()) {
      count(raw.cells[row]);
      continue;
    }
    for (uint64_t i = raw.begin(row); i < raw.ends[row]; ++i) count(raw.cells[i]);
  }
}

// Returns the values that were counted, at most so many, by falling frequency; the order of the
// texts decides between values that are equally frequent.
std::vector<std::string> by_frequency(const std::vector<uint64_t>& counts,
                                      const std::vector<std::string>& values,
                                      size_t most = std::numeric_limits<size_t>::max()) {
  std::vector<size_t> order;
  for (size_t value = 0; value < counts.size(); ++value)
    if (counts[value] > 0) order.push_back(value);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(most, order.size()));
  std::ranges::partial_sort(order, end, [&](size_t a, size_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : values[a] < values[b];
  });
  order.erase(end, order.end());
  std::vector<std::string> sorted;
  for (const size_t value : order) sorted.push_back(values[value]);
  return sorted;
}

// The classes are sorted: as numbers if all of them are, else as texts.
std::vector<std::string> sorted_classes(std::vector<std::string> classes) {
  const auto number = [](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return text.empty() || *end != 0 ? std::numeric_limits<double>::quiet_NaN() : value;
  };
  const bool all = std::ranges::none_of(
      classes, [&](const std::string& text) { return std::isnan(number(text)); });
  std::ranges::sort(classes, [&](const std::string& a, const std::string& b) {
    return all && number(a) != number(b) ? number(a) < number(b) : a < b;
  });
  return classes;
}

void require_length(const RawColumn& raw, const RawRows& rows, uint64_t row, uint64_t length) {
  const uint64_t found = raw.ends[row] - raw.begin(row);
  if (found != length)
    rows.refuse(row, raw.name, fmt::format("{} numbers, as the first row has", length),
                std::to_string(found));
}

}  // namespace

void NumberStatistics::add(double number) {
  least_ = count_ == 0 ? number : std::min(least_, number);
  most_ = count_ == 0 ? number : std::max(most_, number);
  ++count_;
  const double before = number - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (number - mean_);
  if (keeps_all_) all_.push_back(number);
}

Scaling NumberStatistics::scaling(Transform transform) const {
  Scaling scaling;
  scaling.is_log = transform == Transform::log;
  if (count_ == 0) return scaling;
  if (transform == Transform::min_max) {
    scaling.offset = least_;
    scaling.factor = most_ > least_ ? 1 / (most_ - least_) : 1;
  } else if (transform == Transform::standardize) {
    scaling.offset = mean_;
    const double deviation = std::sqrt(squares_ / static_cast<double>(count_));
    // The deviation of equal numbers is what rounding leaves.
    if (deviation > 1e-12 * std::abs(mean_)) scaling.factor = 1 / deviation;
  }
  return scaling;
}

std::vector<double> NumberStatistics::bounds(int64_t buckets) {
  std::ranges::sort(all_);
  std::vector<double> bounds;
  const auto parts = static_cast<uint64_t>(buckets);
  for (uint64_t k = 1; k < parts && !all_.empty(); ++k) {
    const double bound = all_[all_.size() * k / parts];
    // Nothing is below the least number.
    if (bound > all_.front() && (bounds.empty() || bound > bounds.back())) bounds.push_back(bound);
  }
  return bounds;
}

void Preparing::begin(const RawRows& rows) {
  const auto add = [&](const spec::TableFeature& feature, const RawColumn& raw) {
    PreparedColumn prepared;
    prepared.name = raw.name;
    prepared.kind = raw.kind;
    if (raw.has_lists()) prepared.separator = raw.separator;
    prepared.least = feature.least;
    prepared.most = feature.most;
    const bool keeps_all = feature.transform == Transform::buckets;
    columns_.push_back({feature, std::move(prepared), NumberStatistics(keeps_all), {}, {}});
  };
  const std::vector<std::string>& targets = source_.target.columns;
  const size_t weights = source_.weight_column.empty() ? 0 : 1;
  features_ = rows.columns.size() - targets.size() - weights;
  for (size_t i = 0; i < features_; ++i)
    if (std::ranges::find(targets, rows.columns[i].name) != targets.end())
      throw Invalid("data.train.table.features: expected columns besides the target, found \"" +
                    rows.columns[i].name + "\", which is the target");
  size_t next = 0;
  for (const spec::TableFeature& feature : source_.features)
    for (size_t i = 0; i < feature.columns.size(); ++i) add(feature, rows.columns[next++]);
  for (; next < features_; ++next) add({}, rows.columns[next]);
  if (features_ == 0)
    throw Invalid(source_.name() + ": expected columns besides the target \"" + targets.front() +
                  "\", found none");
  spec::TableFeature target;
  target.transform = source_.target.transform;
  for (; next < rows.columns.size() - weights; ++next) add(target, rows.columns[next]);
}

void Preparing::add(const RawRows& rows, std::span<const uint64_t> chosen) {
  if (columns_.empty()) begin(rows);
  for (size_t i = 0; i < columns_.size(); ++i) {
    const RawColumn& raw = rows.columns[i];
    if (i >= features_)
      for (const uint64_t row : chosen)
        if (raw.is_text() ? raw.cells[row] < 0 : std::isnan(raw.numbers[row]))
          rows.refuse(row, raw.name, "the target of the row", "an empty cell");
    count(columns_[i], raw, rows, chosen);
  }
  if (!source_.weight_column.empty())
    for (const uint64_t row : chosen) weight_of(rows, rows.columns.back(), row);
}

void Preparing::count(Column& column, const RawColumn& raw, const RawRows& rows,
                      std::span<const uint64_t> chosen) {
  if (raw.is_text()) {
    count_values(raw, chosen, column.counts, column.values);
    return;
  }
  const auto add = [&](double number) {
    if (!std::isnan(number)) column.numbers.add(column.prepared.clipped(number));
  };
  for (const uint64_t row : chosen) {
    if (raw.kind == FeatureKind::number) {
      add(raw.numbers[row]);
      continue;
    }
    if (std::exchange(column.is_first, false))
      column.prepared.length = raw.ends[row] - raw.begin(row);
    require_length(raw, rows, row, column.prepared.length);
    for (uint64_t i = raw.begin(row); i < raw.ends[row]; ++i) add(raw.numbers[i]);
  }
}

void Preparing::finish(Column& column) {
  PreparedColumn& prepared = column.prepared;
  const spec::TableFeature& feature = column.feature;
  if (prepared.is_category()) {
    prepared.hash_buckets = static_cast<uint64_t>(feature.hash_buckets);
    if (prepared.hash_buckets > 0) return;
    prepared.values =
        by_frequency(column.counts, column.values, static_cast<size_t>(feature.most_values));
    prepared.spare_values = static_cast<uint64_t>(feature.spare_values);
    return;
  }
  prepared.flags_missing =
      feature.missing == spec::Missing::flag && prepared.kind == FeatureKind::number;
  prepared.missing =
      feature.missing == spec::Missing::constant ? feature.constant : column.numbers.mean();
  if (feature.transform == Transform::buckets)
    prepared.bounds = column.numbers.bounds(feature.buckets);
  else
    prepared.scaling = column.numbers.scaling(feature.transform);
}

Preparation Preparing::finish() {
  Preparation preparation;
  for (size_t i = 0; i < features_; ++i) {
    finish(columns_[i]);
    preparation.columns.push_back(std::move(columns_[i].prepared));
  }
  preparation.target_is_class = source_.target.is_class;
  for (size_t i = features_; i < columns_.size(); ++i) {
    preparation.targets.push_back(columns_[i].prepared.name);
    if (preparation.target_is_class)
      preparation.classes = sorted_classes(by_frequency(columns_[i].counts, columns_[i].values));
    else
      preparation.target_scalings.push_back(columns_[i].numbers.scaling(source_.target.transform));
  }
  if (preparation.inputs() == 0)
    throw Invalid(source_.name() + ": expected numbers in the features, found empty vectors");
  return preparation;
}

Extending::Extending(Preparation& preparation, const std::vector<std::string>& frozen)
    : preparation_(preparation),
      counts_(preparation.columns.size()),
      values_(preparation.columns.size()) {
  for (const PreparedColumn& column : preparation.columns)
    grows_.push_back(column.spare_values > 0 &&
                     std::ranges::find(frozen, column.name) == frozen.end());
}

void Extending::add(const RawRows& rows, std::span<const uint64_t> chosen) {
  for (size_t i = 0; i < counts_.size(); ++i)
    if (grows_[i]) count_values(rows.columns[i], chosen, counts_[i], values_[i]);
}

void Extending::finish() {
  for (size_t i = 0; i < counts_.size(); ++i) {
    PreparedColumn& column = preparation_.columns[i];
    const std::unordered_set<std::string> known(column.values.begin(), column.values.end());
    for (std::string& value : by_frequency(counts_[i], values_[i])) {
      if (column.spare_values == 0) break;
      if (known.contains(value)) continue;
      column.values.push_back(std::move(value));
      --column.spare_values;
    }
  }
}

}  // namespace muster::data
