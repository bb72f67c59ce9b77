#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/system/input_file.h"
#include "trainer/checkpoint/files/number_type.h"
#include "trainer/checkpoint/files/speed_limit.h"

namespace muster::checkpoint {

// safetensors, https://github.com/huggingface/safetensors#format: u64 (little-endian) N, N bytes of
// JSON, the tensors' bytes without holes. F32 is written; F32, F16, BF16 and F64 are read.

struct FileEntry {
  std::string name;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  bool operator==(const FileEntry&) const = default;
};

struct TensorPiece {           // rows [first_row, first_row + rows) of a tensor, in memory
  std::string name;            // "hidden_1/kernel", or "m/hidden_1/kernel" for a slot
  std::vector<int64_t> shape;  // logical, whole
  int64_t first_row = 0;
  int64_t rows = 0;  // compute::row_floats says what a row is
  std::span<const float> values;

  bool whole() const;
};

// Writes `pieces` as one safetensors file (F32) with fsync; `path` must not exist. A piece that is
// not whole is written as a tensor of its rows, [rows, row_floats], or [rows] where the tensor has
// one axis, with an entry "slice:<name>" in __metadata__: {"shape": [...], "first_row": n}. Returns
// the file's entry. Throws WriteError (then there is no file), and Invalid with kDiverged, naming
// tensor and element, if a value is not finite: such a checkpoint must never be published. `limit`
// limits the speed; null: no limit.
FileEntry write_safetensors(const std::filesystem::path& path, std::span<const TensorPiece> pieces,
                            const std::map<std::string, std::string>& metadata,
                            SpeedLimit* limit = nullptr);

// The checked content of a file's JSON.
struct SafetensorsHeader {
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    std::string dtype;                 // "F32"
    const NumberType* type = nullptr;  // null: a type that is not read, for example I64
    uint64_t begin = 0;                // bytes from the file's start
    uint64_t end = 0;
    // Returns the number of elements; 0 for a type that is not read.
    uint64_t count() const { return type == nullptr ? 0 : (end - begin) / type->bytes; }
    // Throws Invalid, naming `file` and the tensor, for a type that is not read.
    void require_numbers(const std::string& file) const;
    // Reads the elements from `first` on as float32. Precondition: the tensor has them (count()).
    void read(const InputFile& file, uint64_t first, std::span<float> values) const;
  };
  std::vector<Tensor> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;

  static constexpr uint64_t kMostJson = 100'000'000;

  // Checks the JSON of a file of `file_bytes`. Throws Invalid naming `file`, tensor and byte: JSON
  // errors, duplicate keys, ranges that overlap, leave holes, pass the end or do not fit the shape.
  // For a type that is not read the shape is not checked.
  static SafetensorsHeader parse(std::string_view json, uint64_t file_bytes,
                                 const std::string& file);
  // Reads and parses the header. Throws Invalid also for a length beyond the file.
  static SafetensorsHeader read(const InputFile& file);
};

// A safetensors file in memory, checked as above. All tensors must have types that are read.
class SafetensorsFile {
 public:
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    std::span<const float> values;
  };
  explicit SafetensorsFile(const std::filesystem::path& path);
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::vector<float> values_;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace muster::checkpoint
