#include "trainer/checkpoint/files/slices.h"

#include <fmt/format.h>

#include "common/documents/json.h"
#include "common/error.h"
#include "trainer/compute/layers/layer.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::checkpoint {
namespace {

bool is_size(const Json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
}

Slice parse(const std::string& file_name, const std::string& tensor, const std::string& text) {
  constexpr size_t kLongest = size_t{64} << 10;  // bytes
  const Json json = text.size() > kLongest ? Json() : parse_or_null(text);
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

std::map<std::string_view, const Slice*> slices_by_tensor(const std::vector<Slice>& slices,
                                                          std::string_view file_name) {
  std::map<std::string_view, const Slice*> found;
  for (const Slice& slice : slices)
    if (slice.file == file_name) found.emplace(slice.tensor, &slice);
  return found;
}

int64_t rows_of(const std::vector<int64_t>& shape) {
  const int64_t row = compute::row_floats(shape);
  return row < 1 ? 0 : compute::element_count(shape).value_or(0) / row;
}

std::vector<int64_t> slice_shape(const std::vector<int64_t>& shape, int64_t rows) {
  return shape.size() < 2 ? std::vector{rows} : std::vector{rows, shape.back()};
}

}  // namespace muster::checkpoint
