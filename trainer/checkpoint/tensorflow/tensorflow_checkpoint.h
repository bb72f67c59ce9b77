#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/system/input_file.h"
#include "trainer/checkpoint/files/weight_source.h"

namespace muster::checkpoint {

// A checkpoint of TensorFlow, version 2 ("V2"): <prefix>.index, a table of the variables by their
// names, and <prefix>.data-00000-of-00002 and so on, their bytes.

// The checked content of an index.
struct TensorflowIndex {
  struct Variable {
    int type = 0;  // number in tensorflow.DataType
    std::vector<int64_t> shape;
    int shard = 0;
    uint64_t offset = 0;  // offset in the shard's file
    uint64_t bytes = 0;
    uint32_t crc = 0;       // masked checksum of these bytes
    bool is_whole = false;  // false: it is saved in parts, which have separate entries
  };
  int shards = 0;
  std::map<std::string, Variable> variables;

  // Throws Invalid naming `file`, and the variable: a damaged table, another byte order, impossible
  // shapes and places. Variables with types that are not read are allowed.
  static TensorflowIndex parse(std::string_view bytes, const std::string& file);
};

class TensorflowCheckpoint : public WeightSource {
 public:
  // Returns the prefix of the checkpoint at `from`, which may be the prefix, the index file, or a
  // folder with one index (or with several, and a file `checkpoint` that names the newest). Returns
  // nothing if there is none, or if the folder is a checkpoint of Muster. Throws Invalid for a
  // folder with several indices and no newest one.
  static std::optional<std::filesystem::path> prefix_of(const std::filesystem::path& from);

  // Throws the errors of TensorflowIndex::parse and InputFile.
  explicit TensorflowCheckpoint(std::filesystem::path prefix);

  std::map<std::string, std::vector<int64_t>> shapes() const override;
  void read(const std::string& name, std::span<float> values) const override;

 private:
  const InputFile& shard(int number) const;

  const std::filesystem::path prefix_;
  const TensorflowIndex index_;
  mutable std::map<int, std::unique_ptr<InputFile>> files_;  // opened when they are needed
};

}  // namespace muster::checkpoint
