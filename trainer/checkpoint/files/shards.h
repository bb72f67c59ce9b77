#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/system/input_file.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/checkpoint/files/safetensors.h"
#include "trainer/checkpoint/files/weight_source.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::checkpoint {

// Safetensors files with the tensors of one state; some tensors are divided by rows. The object
// knows the file of each row, and reads no values before every shape has been checked.
class Shards : public WeightSource {
 public:
  // `name` is used in errors.
  explicit Shards(std::string name) : name_(std::move(name)) {}

  // Adds the tensors of a file. `manifest_slices` or, if it is null, the file's own metadata say
  // which rows of a tensor the file has. Throws Invalid if they do not fit.
  void add(const std::filesystem::path& path, const std::vector<Slice>* manifest_slices);

  // Reads the parts of the layout's tensors within `range`; the tensors' names in the files are
  // "<prefix><tensor>". The padding becomes zero. Throws Invalid naming file and tensor if one is
  // missing, not whole, or has another shape.
  void load(const compute::ParameterLayout& layout, compute::Range range, std::span<float> values,
            const std::string& prefix) const;

  bool has(const std::string& tensor) const { return parts_.contains(tensor); }
  std::map<std::string, std::vector<int64_t>> shapes() const override;
  void read(const std::string& name, std::span<float> values) const override;

 private:
  // The elements of a tensor in one file, from `first` on.
  struct Part {
    const InputFile* file = nullptr;
    SafetensorsHeader::Tensor tensor;  // in the file
    uint64_t first = 0;
    std::vector<int64_t> shape;  // logical, whole
  };
  struct Copy {
    const Part* part;
    uint64_t from;  // element of the part
    std::span<float> to;

    void make() const { part->tensor.read(*part->file, from, to); }
  };

  static Part part_of(const InputFile& file, const SafetensorsHeader::Tensor& tensor,
                      const Slice* slice);
  void add_copies(const std::string& name, const std::vector<int64_t>& shape, uint64_t begin,
                  std::span<float> to, std::vector<Copy>& copies) const;

  const std::string name_;
  std::vector<std::unique_ptr<InputFile>> files_;
  std::map<std::string, std::vector<Part>> parts_;  // by first
};

}  // namespace muster::checkpoint
