#include "trainer/data/tables/preparation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "common/documents/json.h"
#include "common/documents/problem.h"
#include "common/error.h"
#include "common/text/listed.h"

namespace muster::data {
namespace {

using spec::Transform;

constexpr size_t kMostClassesNamed = 10;

double logarithm(double number) {
  return number < 0 ? -std::log1p(-number) : std::log1p(number);
}

// Takes the numbers that are not missing.
Scaling scaling_for(Transform transform, const std::vector<double>& numbers) {
  Scaling scaling;
  scaling.is_log = transform == Transform::log;
  if (numbers.empty() || transform == Transform::none || transform == Transform::log)
    return scaling;
  if (transform == Transform::min_max) {
    const auto [least, most] = std::ranges::minmax(numbers);
    scaling.offset = least;
    scaling.factor = most > least ? 1 / (most - least) : 1;
    return scaling;
  }
  double sum = 0, squares = 0;
  for (const double number : numbers) sum += number;
  const auto count = static_cast<double>(numbers.size());
  scaling.offset = sum / count;
  for (const double number : numbers)
    squares += (number - scaling.offset) * (number - scaling.offset);
  const double deviation = std::sqrt(squares / count);
  // The deviation of equal numbers is what rounding leaves.
  if (deviation > 1e-12 * std::abs(scaling.offset)) scaling.factor = 1 / deviation;
  return scaling;
}

// Returns the different values of these rows, by falling frequency; the order of the texts decides
// between values that are equally frequent.
std::vector<std::string> by_frequency(const RawColumn& column, std::span<const uint64_t> rows) {
  std::vector<uint64_t> counts(column.values.size());
  for (const uint64_t row : rows)
    if (column.cells[row] >= 0) ++counts[static_cast<size_t>(column.cells[row])];
  std::vector<size_t> order;
  for (size_t value = 0; value < counts.size(); ++value)
    if (counts[value] > 0) order.push_back(value);
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : column.values[a] < column.values[b];
  });
  std::vector<std::string> values;
  for (const size_t value : order) values.push_back(column.values[value]);
  return values;
}

std::vector<double> present(const RawColumn& column, std::span<const uint64_t> rows) {
  std::vector<double> numbers;
  for (const uint64_t row : rows)
    if (!std::isnan(column.numbers[row])) numbers.push_back(column.numbers[row]);
  return numbers;
}

PreparedColumn prepare_column(const spec::TableFeature& feature, const RawColumn& column,
                              std::span<const uint64_t> rows) {
  PreparedColumn prepared;
  prepared.name = column.name;
  prepared.is_category = column.is_text;
  if (column.is_text) {
    prepared.values = by_frequency(column, rows);
    if (prepared.values.size() > static_cast<size_t>(feature.most_values))
      prepared.values.resize(static_cast<size_t>(feature.most_values));
    return prepared;
  }
  const std::vector<double> numbers = present(column, rows);
  prepared.scaling = scaling_for(feature.transform, numbers);
  prepared.flags_missing = feature.missing == spec::Missing::flag;
  if (feature.missing == spec::Missing::constant) {
    prepared.missing = feature.constant;
  } else if (!numbers.empty()) {
    for (const double number : numbers) prepared.missing += number;
    prepared.missing /= static_cast<double>(numbers.size());
  }
  return prepared;
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

const RawColumn& column_named(const RawTable& table, const std::string& name) {
  return *std::ranges::find(table.columns, name, &RawColumn::name);
}

[[noreturn]] void refuse_missing(const RawTable& table, uint64_t row, const std::string& target) {
  table.refuse(row, target, "the target of the row", "an empty cell");
}

// Writes the inputs of one column, `stride` floats apart.
void write_column(const PreparedColumn& prepared, const RawTable& table, const RawColumn& column,
                  std::span<const uint64_t> rows, float* to, size_t stride) {
  std::vector<size_t> slots(column.values.size(), prepared.values.size());
  if (prepared.is_category) {
    std::unordered_map<std::string_view, size_t> known;
    for (size_t i = 0; i < prepared.values.size(); ++i) known.emplace(prepared.values[i], i);
    for (size_t value = 0; value < slots.size(); ++value) {
      const auto found = known.find(column.values[value]);
      if (found != known.end()) slots[value] = found->second;
    }
  }
  for (const uint64_t row : rows) {
    if (prepared.is_category) {
      const int32_t cell = column.cells[row];
      std::fill_n(to, prepared.inputs(), 0.0f);
      to[cell < 0 ? prepared.values.size() : slots[static_cast<size_t>(cell)]] = 1;
    } else {
      const double number = column.numbers[row];
      const bool is_missing = std::isnan(number);
      *to = static_cast<float>(prepared.scaling.apply(is_missing ? prepared.missing : number));
      if (!std::isfinite(*to))
        table.refuse(row, column.name, "a number that is a float after its transform",
                     fmt::format("{}", number));
      if (prepared.flags_missing) to[1] = is_missing ? 1 : 0;
    }
    to += stride;
  }
}

}  // namespace

double Scaling::apply(double number) const {
  return ((is_log ? logarithm(number) : number) - offset) * factor;
}

double Scaling::undo(double scaled) const {
  const double number = scaled / factor + offset;
  if (!is_log) return number;
  return number < 0 ? -std::expm1(-number) : std::expm1(number);
}

size_t PreparedColumn::inputs() const {
  if (is_category) return values.size() + 1;
  return flags_missing ? 2 : 1;
}

int64_t Preparation::inputs() const {
  size_t inputs = 0;
  for (const PreparedColumn& column : columns) inputs += column.inputs();
  return static_cast<int64_t>(inputs);
}

Wanted Preparation::wanted(bool with_target) const {
  Wanted wanted;
  for (const PreparedColumn& column : columns)
    wanted.columns.push_back({column.name, column.is_category});
  if (with_target) wanted.columns.push_back({target, target_is_class});
  return wanted;
}

Wanted wanted_of(const spec::TableSource& source) {
  Wanted wanted;
  wanted.all = source.features.empty();
  for (const spec::TableFeature& feature : source.features)
    for (const std::string& name : feature.columns)
      wanted.columns.push_back({name, feature.is_category});
  wanted.columns.push_back({source.target.column, source.target.is_class});
  return wanted;
}

Preparation prepare(const spec::TableSource& source, const RawTable& table,
                    std::span<const uint64_t> rows) {
  Preparation preparation;
  const RawColumn& target = table.columns.back();
  preparation.target = target.name;
  preparation.target_is_class = target.is_text;
  for (size_t i = 0; i + 1 < table.columns.size(); ++i)
    if (table.columns[i].name == target.name)
      throw Invalid("data.train.table.features: expected columns besides the target, found \"" +
                    target.name + "\", which is the target");
  const auto add = [&](const spec::TableFeature& feature, const RawColumn& column) {
    preparation.columns.push_back(prepare_column(feature, column, rows));
  };
  size_t next = 0;
  for (const spec::TableFeature& feature : source.features)
    for (size_t i = 0; i < feature.columns.size(); ++i) add(feature, table.columns[next++]);
  if (source.features.empty())
    for (; next + 1 < table.columns.size(); ++next) add({}, table.columns[next]);
  if (preparation.columns.empty())
    throw Invalid(source.name() + ": expected columns besides the target \"" + target.name +
                  "\", found none");
  if (target.is_text) {
    preparation.classes = sorted_classes(by_frequency(target, rows));
    if (preparation.classes.empty()) refuse_missing(table, rows.front(), target.name);
  } else {
    preparation.target_scaling = scaling_for(source.target.transform, present(target, rows));
  }
  return preparation;
}

void write_inputs(const Preparation& preparation, const RawTable& table,
                  std::span<const uint64_t> rows, std::span<float> inputs) {
  const auto stride = static_cast<size_t>(preparation.inputs());
  float* to = inputs.data();
  for (size_t i = 0; i < preparation.columns.size(); ++i) {
    write_column(preparation.columns[i], table, table.columns[i], rows, to, stride);
    to += preparation.columns[i].inputs();
  }
}

std::vector<int32_t> class_targets(const Preparation& preparation, const RawTable& table,
                                   std::span<const uint64_t> rows) {
  const RawColumn& column = column_named(table, preparation.target);
  std::vector<int32_t> numbers;
  for (const std::string& value : column.values) {
    const auto found = std::ranges::find(preparation.classes, value);
    numbers.push_back(found == preparation.classes.end()
                          ? -1
                          : static_cast<int32_t>(found - preparation.classes.begin()));
  }
  std::vector<int32_t> labels;
  labels.reserve(rows.size());
  for (const uint64_t row : rows) {
    const int32_t cell = column.cells[row];
    if (cell < 0) refuse_missing(table, row, column.name);
    labels.push_back(numbers[static_cast<size_t>(cell)]);
    if (labels.back() < 0)
      table.refuse(row, column.name,
                   "one of the classes of the training data, " +
                       listed(preparation.classes, kMostClassesNamed),
                   "\"" + column.values[static_cast<size_t>(cell)] + "\"");
  }
  return labels;
}

std::vector<float> number_targets(const Preparation& preparation, const RawTable& table,
                                  std::span<const uint64_t> rows) {
  const RawColumn& column = column_named(table, preparation.target);
  std::vector<float> targets;
  targets.reserve(rows.size());
  for (const uint64_t row : rows) {
    const double number = column.numbers[row];
    if (std::isnan(number)) refuse_missing(table, row, column.name);
    targets.push_back(static_cast<float>(preparation.target_scaling.apply(number)));
    if (!std::isfinite(targets.back()))
      table.refuse(row, column.name, "a number that is a float after its transform",
                   fmt::format("{}", number));
  }
  return targets;
}

namespace {

Json scaling_json(const Scaling& scaling) {
  return {{"log", scaling.is_log}, {"offset", scaling.offset}, {"factor", scaling.factor}};
}

double parse_finite(const Json& json, const char* name, const std::string& where) {
  const double number = number_or(json, name, std::numeric_limits<double>::quiet_NaN());
  if (!std::isfinite(number))
    throw Invalid(where + ": " + name + ": expected a number, found " +
                  describe(member(json, name)));
  return number;
}

Scaling parse_scaling(const Json& json, const std::string& where) {
  Scaling scaling;
  scaling.is_log = bool_or(json, "log", false);
  scaling.offset = parse_finite(json, "offset", where);
  scaling.factor = parse_finite(json, "factor", where);
  if (scaling.factor == 0) throw Invalid(where + ": factor: expected another number than 0");
  return scaling;
}

}  // namespace

Json to_json(const Preparation& preparation) {
  Json columns = Json::array();
  for (const PreparedColumn& column : preparation.columns) {
    Json json = {{"column", column.name}};
    if (column.is_category) {
      json["values"] = column.values;
    } else {
      json["scaling"] = scaling_json(column.scaling);
      json["missing"] = column.missing;
      json["flag"] = column.flags_missing;
    }
    columns.push_back(std::move(json));
  }
  Json json = {{"columns", std::move(columns)}, {"target", preparation.target}};
  if (preparation.target_is_class)
    json["classes"] = preparation.classes;
  else
    json["scaling"] = scaling_json(preparation.target_scaling);
  return json;
}

Preparation parse_preparation(const Json& json, const std::string& where) {
  Preparation preparation;
  preparation.target = string_or(json, "target", "");
  preparation.target_is_class = given(json, "classes");
  preparation.classes = strings_in(member(json, "classes"));
  if (!preparation.target_is_class)
    preparation.target_scaling = parse_scaling(member(json, "scaling"), where + ": scaling");
  for (const Json& value : member(json, "columns")) {
    PreparedColumn column;
    column.name = string_or(value, "column", "");
    const std::string place = where + ": columns: " + column.name;
    column.is_category = given(value, "values");
    column.values = strings_in(member(value, "values"));
    if (!column.is_category) {
      column.scaling = parse_scaling(member(value, "scaling"), place);
      column.missing = parse_finite(value, "missing", place);
      column.flags_missing = bool_or(value, "flag", false);
    }
    preparation.columns.push_back(std::move(column));
  }
  if (preparation.columns.empty() || preparation.target.empty())
    throw Invalid(where + ": expected columns and a target, found " + describe(json));
  return preparation;
}

}  // namespace muster::data
