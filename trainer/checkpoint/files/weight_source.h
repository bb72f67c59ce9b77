#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace muster::checkpoint {

// Tensors with names, in files.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Returns the shapes of all tensors by their names.
  virtual std::map<std::string, std::vector<int64_t>> shapes() const = 0;
  // Reads a whole tensor in C order. Precondition: shapes() has the tensor, with values.size()
  // elements. Throws Invalid naming file and tensor if the tensor is not whole, is damaged or has a
  // type that cannot be converted to float32; Unavailable for an I/O error.
  virtual void read(const std::string& name, std::span<float> values) const = 0;
};

}  // namespace muster::checkpoint
