#include "trainer/data/tables/preparation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/documents/json.h"
#include "common/documents/problem.h"
#include "common/error.h"

namespace muster::data {
namespace {

constexpr const char* kKinds[] = {"number", "category", "categories", "vector"};

double logarithm(double number) {
  return number < 0 ? -std::log1p(-number) : std::log1p(number);
}

Json scaling_json(const Scaling& scaling) {
  return {{"log", scaling.is_log}, {"offset", scaling.offset}, {"factor", scaling.factor}};
}

Json column_json(const PreparedColumn& column) {
  Json json = {{"column", column.name}, {"kind", kKinds[static_cast<size_t>(column.kind)]}};
  if (!column.separator.empty()) json["separator"] = column.separator;
  if (column.is_category()) {
    json["values"] = column.values;
    if (column.spare_values > 0) json["spareValues"] = column.spare_values;
    if (column.hash_buckets > 0) json["hashBuckets"] = column.hash_buckets;
    return json;
  }
  json["missing"] = column.missing;
  if (column.least) json["least"] = *column.least;
  if (column.most) json["most"] = *column.most;
  if (column.bounds.empty())
    json["scaling"] = scaling_json(column.scaling);
  else
    json["bounds"] = column.bounds;
  if (column.kind == FeatureKind::vector)
    json["length"] = column.length;
  else
    json["flag"] = column.flags_missing;
  return json;
}

double parse_finite(const Json& json, const char* name, const std::string& where) {
  const double number = number_or(json, name, std::numeric_limits<double>::quiet_NaN());
  if (!std::isfinite(number))
    throw Invalid(where + ": " + name + ": expected a number, found " +
                  describe(member(json, name)));
  return number;
}

uint64_t parse_count(const Json& json, const char* name, const std::string& where) {
  const int64_t count = integer_or(json, name, 0);
  if (count < 0)
    throw Invalid(where + ": " + name + ": expected 0 or more, found " + std::to_string(count));
  return static_cast<uint64_t>(count);
}

Scaling parse_scaling(const Json& json, const std::string& where) {
  Scaling scaling;
  scaling.is_log = bool_or(json, "log", false);
  scaling.offset = parse_finite(json, "offset", where);
  scaling.factor = parse_finite(json, "factor", where);
  if (scaling.factor == 0) throw Invalid(where + ": factor: expected another number than 0");
  return scaling;
}

FeatureKind parse_kind(const Json& json, const std::string& where) {
  const std::string name = string_or(json, "kind", "");
  const auto* const found = std::ranges::find(kKinds, name);
  if (found == std::end(kKinds))
    throw Invalid(where + ": kind: expected number, category, categories or vector, found " +
                  describe(member(json, "kind")));
  return static_cast<FeatureKind>(found - std::begin(kKinds));
}

PreparedColumn parse_column(const Json& json, const std::string& where) {
  PreparedColumn column;
  column.name = string_or(json, "column", "");
  const std::string place = where + ": columns: " + column.name;
  column.kind = parse_kind(json, place);
  column.separator = string_or(json, "separator", "");
  if (column.is_category()) {
    column.values = strings_in(member(json, "values"));
    column.spare_values = parse_count(json, "spareValues", place);
    column.hash_buckets = parse_count(json, "hashBuckets", place);
    return column;
  }
  column.missing = parse_finite(json, "missing", place);
  if (given(json, "least")) column.least = parse_finite(json, "least", place);
  if (given(json, "most")) column.most = parse_finite(json, "most", place);
  for (const Json& bound : member(json, "bounds"))
    column.bounds.push_back(parse_finite({{"bound", bound}}, "bound", place + ": bounds"));
  if (column.bounds.empty()) column.scaling = parse_scaling(member(json, "scaling"), place);
  column.length = column.kind == FeatureKind::vector ? parse_count(json, "length", place) : 1;
  column.flags_missing = bool_or(json, "flag", false);
  return column;
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
  if (is_category()) return hash_buckets > 0 ? hash_buckets : values.size() + spare_values + 1;
  const size_t each = bounds.empty() ? 1 : bounds.size() + 1;
  return each * length + (flags_missing ? 1 : 0);
}

double PreparedColumn::clipped(double number) const {
  if (least && number < *least) return *least;
  return most && number > *most ? *most : number;
}

int64_t Preparation::inputs() const {
  size_t inputs = 0;
  for (const PreparedColumn& column : columns) inputs += column.inputs();
  return static_cast<int64_t>(inputs);
}

Wanted Preparation::wanted(bool with_target) const {
  Wanted wanted;
  for (const PreparedColumn& column : columns)
    wanted.columns.push_back({column.name, column.kind, column.separator});
  const FeatureKind kind = target_is_class ? FeatureKind::category : FeatureKind::number;
  if (with_target)
    for (const std::string& name : targets) wanted.columns.push_back({name, kind});
  return wanted;
}

Wanted wanted_of(const spec::TableSource& source) {
  Wanted wanted;
  wanted.all = source.features.empty();
  for (const spec::TableFeature& feature : source.features)
    for (const std::string& name : feature.columns)
      wanted.columns.push_back({name, feature.kind, feature.separator});
  for (const std::string& name : source.target.columns)
    wanted.columns.push_back(
        {name, source.target.is_class ? FeatureKind::category : FeatureKind::number});
  return wanted;
}

Json to_json(const Preparation& preparation) {
  Json columns = Json::array();
  for (const PreparedColumn& column : preparation.columns) columns.push_back(column_json(column));
  Json json = {{"columns", std::move(columns)},
               {"targets", preparation.targets},
               {"files", preparation.files}};
  if (preparation.target_is_class) {
    json["classes"] = preparation.classes;
    return json;
  }
  for (const Scaling& scaling : preparation.target_scalings)
    json["scalings"].push_back(scaling_json(scaling));
  return json;
}

Preparation parse_preparation(const Json& json, const std::string& where) {
  Preparation preparation;
  preparation.targets = strings_in(member(json, "targets"));
  preparation.files = string_or(json, "files", "");
  preparation.target_is_class = given(json, "classes");
  preparation.classes = strings_in(member(json, "classes"));
  if (!preparation.target_is_class)
    for (size_t i = 0; i < preparation.targets.size(); ++i) {
      const Json& scalings = member(json, "scalings");
      preparation.target_scalings.push_back(
          parse_scaling(i < scalings.size() ? scalings[i] : Json(), where + ": scalings"));
    }
  for (const Json& column : member(json, "columns"))
    preparation.columns.push_back(parse_column(column, where));
  if (preparation.columns.empty() || preparation.targets.empty())
    throw Invalid(where + ": expected columns and targets, found " + describe(json));
  return preparation;
}

}  // namespace muster::data
