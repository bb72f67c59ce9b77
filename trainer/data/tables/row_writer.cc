#include "trainer/data/tables/row_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/text/listed.h"

namespace muster::data {
namespace {

constexpr size_t kMostClassesNamed = 10;
constexpr const char* kFloat = "a number that is a float after its transform";

// 64-bit FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv): the same on every machine.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Writes the inputs of one number.
void write_number(const PreparedColumn& column, double number, const RawRows& rows, uint64_t row,
                  float* to) {
  const bool is_missing = std::isnan(number);
  const double clipped = column.clipped(is_missing ? column.missing : number);
  if (column.flags_missing) to[column.inputs() - 1] = is_missing ? 1 : 0;
  if (!column.bounds.empty()) {
    std::fill_n(to, column.bounds.size() + 1, 0.0f);
    to[std::ranges::upper_bound(column.bounds, clipped) - column.bounds.begin()] = 1;
    return;
  }
  *to = static_cast<float>(column.scaling.apply(clipped));
  if (!std::isfinite(*to)) rows.refuse(row, column.name, kFloat, fmt::format("{}", number));
}

}  // namespace

float weight_of(const RawRows& rows, const RawColumn& weights, uint64_t row) {
  const double number = weights.numbers[row];
  const auto weight = static_cast<float>(number);
  if (std::isfinite(weight) && weight >= 0) return weight;
  rows.refuse(row, weights.name, "a weight, which is a float of 0 or more",
              std::isnan(number) ? "an empty cell" : fmt::format("{}", number));
}

RowWriter::RowWriter(const Preparation& preparation)
    : preparation_(preparation),
      stride_(static_cast<uint64_t>(preparation.inputs())),
      places_(preparation.columns.size()) {
  const auto number = [](const std::vector<std::string>& texts, Places& places) {
    for (size_t i = 0; i < texts.size(); ++i)
      places.known.emplace(texts[i], static_cast<int32_t>(i));
  };
  for (size_t i = 0; i < places_.size(); ++i) number(preparation.columns[i].values, places_[i]);
  number(preparation.classes, classes_);
}

// Finds the places of the values that came since the last call.
void RowWriter::find_places(const RawColumn& raw, Places& places, int32_t other,
                            uint64_t hash_buckets) const {
  for (size_t i = places.of_value.size(); i < raw.values.size(); ++i) {
    if (hash_buckets > 0) {
      places.of_value.push_back(static_cast<int32_t>(hash_of(raw.values[i]) % hash_buckets));
      continue;
    }
    const auto found = places.known.find(raw.values[i]);
    places.of_value.push_back(found == places.known.end() ? other : found->second);
  }
}

void RowWriter::write_inputs(const RawRows& rows, std::span<const PlacedRow> placed,
                             float* inputs) {
  // So few rows at a time that their inputs stay in a core's cache while all columns are written.
  constexpr size_t kTogether = 64;
  while (!placed.empty()) {
    const auto few = placed.first(std::min(kTogether, placed.size()));
    float* to = inputs;
    for (size_t i = 0; i < preparation_.columns.size(); ++i) {
      write_column(i, rows, few, to);
      to += preparation_.columns[i].inputs();
    }
    placed = placed.subspan(few.size());
  }
}

void RowWriter::write_column(size_t number, const RawRows& rows, std::span<const PlacedRow> placed,
                             float* inputs) {
  const PreparedColumn& column = preparation_.columns[number];
  const RawColumn& raw = rows.columns[number];
  const size_t width = column.inputs();
  // The input of every value without one of its own, and of a missing cell.
  const auto other = column.hash_buckets > 0
                         ? static_cast<int32_t>(hash_of("") % column.hash_buckets)
                         : static_cast<int32_t>(width) - 1;
  Places& places = places_[number];
  if (column.is_category()) find_places(raw, places, other, column.hash_buckets);
  const auto place = [&](int32_t cell) {
    return cell < 0 ? other : places.of_value[static_cast<size_t>(cell)];
  };
  for (const auto& [row, sample] : placed) {
    float* const to = inputs + sample * stride_;
    switch (column.kind) {
      case FeatureKind::number:
        write_number(column, raw.numbers[row], rows, row, to);
        break;
      case FeatureKind::category:
        std::fill_n(to, width, 0.0f);
        to[place(raw.cells[row])] = 1;
        break;
      case FeatureKind::categories:
        std::fill_n(to, width, 0.0f);
        for (uint64_t i = raw.begin(row); i < raw.ends[row]; ++i) to[place(raw.cells[i])] += 1;
        break;
      case FeatureKind::vector:
        if (raw.ends[row] - raw.begin(row) != column.length)
          rows.refuse(row, column.name,
                      fmt::format("{} numbers, as in the training data", column.length),
                      std::to_string(raw.ends[row] - raw.begin(row)));
        for (uint64_t i = 0; i < column.length; ++i)
          write_number(column, raw.numbers[raw.begin(row) + i], rows, row,
                       to + i * (width / column.length));
    }
  }
}

void RowWriter::write_classes(const RawRows& rows, std::span<const PlacedRow> placed,
                              int32_t* classes) {
  const RawColumn& raw = rows.column(preparation_.targets.front());
  find_places(raw, classes_, -1, 0);
  for (const auto& [row, sample] : placed) {
    const int32_t cell = raw.cells[row];
    if (cell < 0) rows.refuse(row, raw.name, "the target of the row", "an empty cell");
    classes[sample] = classes_.of_value[static_cast<size_t>(cell)];
    if (classes[sample] < 0)
      rows.refuse(row, raw.name,
                  "one of the classes of the training data, " +
                      listed(preparation_.classes, kMostClassesNamed),
                  "\"" + raw.values[static_cast<size_t>(cell)] + "\"");
  }
}

void RowWriter::write_targets(const RawRows& rows, std::span<const PlacedRow> placed,
                              float* targets) const {
  const size_t count = preparation_.targets.size();
  for (size_t i = 0; i < count; ++i) {
    const RawColumn& raw = rows.column(preparation_.targets[i]);
    for (const auto& [row, sample] : placed) {
      const double number = raw.numbers[row];
      if (std::isnan(number)) rows.refuse(row, raw.name, "the target of the row", "an empty cell");
      float& target = targets[sample * count + i];
      target = static_cast<float>(preparation_.target_scalings[i].apply(number));
      if (!std::isfinite(target)) rows.refuse(row, raw.name, kFloat, fmt::format("{}", number));
    }
  }
}

}  // namespace muster::data
