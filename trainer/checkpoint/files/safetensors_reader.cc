#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "common/error.h"
#include "trainer/checkpoint/files/safetensors.h"

namespace muster::checkpoint {
namespace {

using SortedJson = nlohmann::json;  // logarithmic look-up: a hostile header has many keys

// Refuses JSON that nlohmann's parser would accept: duplicate keys, deep nesting.
class StrictKeys {
 public:
  explicit StrictKeys(const std::string& file) : file_(file) {}
  bool operator()(int depth, SortedJson::parse_event_t event, SortedJson& parsed) {
    using Event = SortedJson::parse_event_t;
    if (depth > 4) throw Invalid(file_ + ": header nested deeper than a safetensors header is");
    if (event == Event::object_start) open_.emplace_back();
    if (event == Event::object_end) open_.pop_back();
    if (event == Event::key && !open_.back().insert(parsed.get<std::string>()).second) {
      throw Invalid(fmt::format("{}: key {} stands twice in the header", file_, parsed.dump()));
    }
    return true;
  }

 private:
  const std::string& file_;
  std::vector<std::set<std::string>> open_;
};

SortedJson parse_json(std::string_view json, const std::string& file) {
  if (json.empty() || json.front() != '{') {
    throw Invalid(file + ": expected the header to begin with '{' at byte 8");
  }
  try {
    StrictKeys strict(file);
    return SortedJson::parse(json, std::ref(strict));
  } catch (const SortedJson::parse_error& error) {
    throw Invalid(
        fmt::format("{}: header is no JSON at byte {}: {}", file, 8 + error.byte, error.what()));
  } catch (const SortedJson::exception& error) {  // a number that no double holds
    throw Invalid(fmt::format("{}: header is no JSON: {}", file, error.what()));
  }
}

bool are_unsigned(const SortedJson& array) {
  return array.is_array() && std::all_of(array.begin(), array.end(), [](const SortedJson& item) {
           return item.is_number_unsigned() &&
                  item.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
         });
}

// Returns the bytes of numbers of this shape, at most `most`; `most` + 1 if there are more.
uint64_t bytes_of(const NumberType& type, const std::vector<int64_t>& shape, uint64_t most) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  uint64_t bytes = type.bytes;
  for (const int64_t size : shape) {
    if (static_cast<uint64_t>(size) > most / bytes) return most + 1;
    bytes *= static_cast<uint64_t>(size);
  }
  return bytes;
}

SafetensorsHeader::Tensor parse_tensor(const std::string& name, const SortedJson& value,
                                       uint64_t data_begin, uint64_t file_bytes,
                                       const std::string& file) {
  const std::string where = fmt::format("{}: tensor {}", file, name);
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets")) {
    throw Invalid(where + ": expected {\"dtype\", \"shape\", \"data_offsets\"}, found " +
                  value.dump().substr(0, 200));
  }
  if (!value["dtype"].is_string()) {
    throw Invalid(fmt::format("{}: expected dtype as a string, found {}", where,
                              value["dtype"].dump().substr(0, 200)));
  }
  const SortedJson& offsets = value["data_offsets"];
  if (!are_unsigned(value["shape"]) || !are_unsigned(offsets) || offsets.size() != 2) {
    throw Invalid(where + ": expected a shape and two data_offsets of integers from 0, found " +
                  value.dump().substr(0, 200));
  }
  SafetensorsHeader::Tensor tensor;
  tensor.name = name;
  tensor.shape = value["shape"].get<std::vector<int64_t>>();
  tensor.dtype = value["dtype"].get<std::string>();
  tensor.type = find_number_type(tensor.dtype);
  const uint64_t data = file_bytes - data_begin;
  const uint64_t begin = offsets[0].get<uint64_t>();
  const uint64_t end = offsets[1].get<uint64_t>();
  if (begin > end || end > data) {
    throw Invalid(fmt::format("{}: bytes [{}, {}) do not lie in the {} bytes of data from byte {}",
                              where, begin, end, data, data_begin));
  }
  if (tensor.type != nullptr && bytes_of(*tensor.type, tensor.shape, data) != end - begin) {
    throw Invalid(fmt::format("{}: shape [{}] of {} does not take the {} bytes from byte {}", where,
                              fmt::join(tensor.shape, ", "), tensor.dtype, end - begin,
                              data_begin + begin));
  }
  tensor.begin = data_begin + begin;
  tensor.end = data_begin + end;
  return tensor;
}

void parse_metadata(const SortedJson& value, std::map<std::string, std::string>& out,
                    const std::string& file) {
  if (!value.is_object()) throw Invalid(file + ": __metadata__: expected an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      throw Invalid(fmt::format("{}: __metadata__: {}: expected a string, found {}", file, key,
                                text.dump().substr(0, 200)));
    }
    out[key] = text.get<std::string>();
  }
}

void require_no_holes(const SafetensorsHeader& header, uint64_t data_begin, uint64_t file_bytes,
                      const std::string& file) {
  uint64_t at = data_begin;
  for (const auto& tensor : header.tensors) {
    if (tensor.begin != at) {
      throw Invalid(fmt::format("{}: tensor {} begins at byte {}, expected {}: {}", file,
                                tensor.name, tensor.begin, at,
                                tensor.begin < at ? "tensors overlap" : "a hole"));
    }
    at = tensor.end;
  }
  if (at != file_bytes) {
    throw Invalid(
        fmt::format("{}: {} bytes from byte {} belong to no tensor", file, file_bytes - at, at));
  }
}

}  // namespace

void SafetensorsHeader::Tensor::require_numbers(const std::string& file) const {
  if (type != nullptr) return;
  throw Invalid(
      fmt::format("{}: tensor {}: expected dtype {}, found {}", file, name, kNumberTypes, dtype));
}

void SafetensorsHeader::Tensor::read(const InputFile& file, uint64_t first,
                                     std::span<float> values) const {
  const uint64_t at = begin + first * type->bytes;
  if (type->bytes == sizeof(float)) return file.read_at(at, std::as_writable_bytes(values));
  std::vector<std::byte> bytes(values.size() * type->bytes);
  file.read_at(at, bytes);
  type->read(bytes, values);
}

SafetensorsHeader SafetensorsHeader::parse(std::string_view json, uint64_t file_bytes,
                                           const std::string& file) {
  const SortedJson value = parse_json(json, file);
  const uint64_t data_begin = sizeof(uint64_t) + json.size();
  SafetensorsHeader header;
  for (const auto& [name, item] : value.items()) {
    if (name == "__metadata__") {
      parse_metadata(item, header.metadata, file);
    } else {
      header.tensors.push_back(parse_tensor(name, item, data_begin, file_bytes, file));
    }
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  require_no_holes(header, data_begin, file_bytes, file);
  return header;
}

SafetensorsHeader SafetensorsHeader::read(const InputFile& file) {
  const std::string name = file.path().string();
  uint64_t length = 0;
  if (file.size() < sizeof length) {
    throw Invalid(fmt::format("{}: truncated: expected 8 bytes of header length, found {}", name,
                              file.size()));
  }
  file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  const uint64_t most = std::min(kMostJson, file.size() - sizeof length);
  if (length > most) {
    throw Invalid(
        fmt::format("{}: header length at byte 0 is {}; expected at most {}", name, length, most));
  }
  std::string json(length, '\0');
  file.read_at(sizeof length, std::as_writable_bytes(std::span(json)));
  return parse(json, file.size(), name);
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) {
  const InputFile file(path);
  SafetensorsHeader header = SafetensorsHeader::read(file);
  metadata_ = std::move(header.metadata);
  size_t count = 0;
  for (const auto& tensor : header.tensors) {
    tensor.require_numbers(path.string());
    count += tensor.count();
  }
  values_.resize(count);
  std::span<float> rest(values_);
  for (auto& tensor : header.tensors) {
    const std::span<float> values = rest.first(tensor.count());
    tensor.read(file, 0, values);
    rest = rest.subspan(values.size());
    tensors_.push_back({std::move(tensor.name), std::move(tensor.shape), values});
  }
}

}  // namespace muster::checkpoint
