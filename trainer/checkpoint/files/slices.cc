#include "trainer/checkpoint/files/slices.h"

#include <fmt/format.h>

#include "common/error.h"
#include "common/json.h"
#include "trainer/compute/layers/layer.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::checkpoint {
namespace {

bool is_size(const Json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
}

Slice parse(const std::string& file_name, const std::string& tensor, const std::string& text) {
  const Json json = parse_or_null(text);
  bool good = json.is_object() && json.contains("shape") && json["shape"].is_array() &&
              json.contains("first_row") && is_size(json["first_row"]);
  if (good) {
    for (const Json& size : json["shape"]) good = good && is_size(size);
  }
  if (!good) {
    throw Invalid(
        fmt::format("{}: __metadata__: slice:{}: expected {{\"shape\": [...], "
                    "\"first_row\": n}}, found {}",
                    file_name, tensor, text.substr(0, 100)));
  }
  return {file_name, tensor, json["shape"].get<std::vector<int64_t>>(),
          json["first_row"].get<int64_t>()};
}

}  // namespace

std::vector<Slice> slices_of(const SafetensorsHeader& header, const std::string& file_name) {
  constexpr std::string_view kPrefix = "slice:";
  std::vector<Slice> slices;
  for (const auto& [key, text] : header.metadata) {
    if (key.starts_with(kPrefix)) {
      slices.push_back(parse(file_name, key.substr(kPrefix.size()), text));
    }
  }
  return slices;
}

int64_t rows_of(const std::vector<int64_t>& shape) {
  const int64_t row = compute::row_floats(shape);
  return row < 1 ? 0 : compute::element_count(shape).value_or(0) / row;
}

std::vector<int64_t> slice_shape(const std::vector<int64_t>& shape, int64_t rows) {
  return shape.size() < 2 ? std::vector{rows} : std::vector{rows, shape.back()};
}

}  // namespace muster::checkpoint
