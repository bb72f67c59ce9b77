#include "trainer/data/sources/sample_format.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "common/documents/json.h"
#include "common/documents/problem.h"
#include "common/error.h"
#include "trainer/compute/layers/layer.h"
#include "trainer/data/sources/look.h"

namespace muster::data {

namespace {

constexpr size_t kMostAxes = 8;

[[noreturn]] void refuse(const std::string& where, const std::string& expected, const Json& found) {
  throw Invalid(where + ": expected " + expected + ", found " + describe(found));
}

std::vector<int64_t> parse_shape(const Json& json, const std::string& where) {
  const Json& axes = member(json, "shape");
  std::vector<int64_t> shape;
  for (const Json& axis : axes) {
    const bool is_axis = axes.is_array() && axis.is_number_integer() && shape.size() < kMostAxes;
    shape.push_back(is_axis ? axis.get<int64_t>() : 0);
  }
  if (shape.empty() || !compute::element_count(shape))
    refuse(where + ": shape", "a list of numbers of at least 1", axes);
  return shape;
}

float parse_number(const Json& json, const char* name, const std::string& where) {
  const double number = number_or(json, name, NAN);
  if (!(std::abs(number) <= std::numeric_limits<float>::max()))
    refuse(where + ": " + name, "a number", member(json, name));
  return static_cast<float>(number);
}

}  // namespace

bool SampleFormat::is_picture() const {
  const bool is_image = shape.size() == 2 || shape.size() == 3;
  return type == compute::ElementType::uint8 && is_image && (channels() == 1 || channels() == 3);
}

uint64_t SampleFormat::bytes() const {
  return std::accumulate(
      shape.begin(), shape.end(), uint64_t{compute::bytes_of(type)},
      [](uint64_t bytes, int64_t axis) { return bytes * static_cast<uint64_t>(axis); });
}

std::string SampleFormat::class_name(size_t index) const {
  return index < classes.size() ? classes[index] : std::to_string(index);
}

SampleFormat format_of(const spec::DataSource& source) {
  auto facts = look_at(source);
  if (!facts || !facts->malformed.empty()) facts = spec::facts_by_manifest(source);
  if (!facts)
    throw Invalid(std::string("expected the files of data.train.") + spec::words_of(source).name +
                  ", which say what a sample is (models of newer versions of Muster say it "
                  "themselves), found none that can be read");
  SampleFormat format;
  format.shape = facts->sample_shape;
  format.classes = facts->classes;
  if (const spec::IdxSource* idx = source.idx()) {
    format.type = compute::ElementType::uint8;
    format.scale = idx->scale;
  } else if (const spec::ImageSettings* images = source.images()) {
    format.type = compute::ElementType::uint8;
    format.scale = images->scale;
    format.offset = images->offset;
  }
  return format;
}

Json to_json(const SampleFormat& format) {
  Json json = {{"shape", format.shape},
               {"type", format.type == compute::ElementType::uint8 ? "uint8" : "float32"},
               {"scale", format.scale},
               {"offset", format.offset},
               {"classes", format.classes}};
  if (!format.table.is_null()) json["table"] = format.table;
  return json;
}

SampleFormat parse_format(const Json& json, const std::string& where) {
  if (!json.is_object()) refuse(where, "the format of samples", json);
  SampleFormat format;
  format.shape = parse_shape(json, where);
  const std::string type = string_or(json, "type", "");
  if (type != "uint8" && type != "float32")
    refuse(where + ": type", "uint8 or float32", member(json, "type"));
  if (type == "uint8") format.type = compute::ElementType::uint8;
  format.scale = parse_number(json, "scale", where);
  format.offset = parse_number(json, "offset", where);
  const Json& classes = member(json, "classes");
  if (!classes.is_array()) refuse(where + ": classes", "a list of names", classes);
  for (const Json& name : classes) {
    if (!name.is_string()) refuse(where + ": classes", "a list of names", name);
    format.classes.push_back(name);
  }
  format.table = member(json, "table");
  return format;
}

}  // namespace muster::data
