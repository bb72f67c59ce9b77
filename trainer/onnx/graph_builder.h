#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/muster/onnx.pb.h"

namespace muster::onnx {

// A dimension of a tensor: its size, or the name of a size that is only known when a model runs.
using Dimension = std::variant<int64_t, std::string>;

using Attribute =
    std::pair<std::string,
              std::variant<float, int64_t, std::vector<int64_t>, std::vector<std::string>>>;

// Adds nodes and tensors to an ONNX graph. Names are made unique: a number is appended to a name
// that exists already.
class GraphBuilder {
 public:
  explicit GraphBuilder(onnxformat::Graph& graph) : graph_(graph) {}

  // Each returns the name of the tensor that it adds.
  std::string input(const std::string& name, onnxformat::DataType type,
                    const std::vector<Dimension>& shape);
  std::string constant(const std::string& name, const std::vector<int64_t>& shape,
                       std::span<const float> values);
  std::string constant(const std::string& name, const std::vector<int64_t>& shape,
                       std::span<const double> values);
  std::string constant(const std::string& name, const std::vector<int64_t>& values);
  // `name` is the name of the node and of its output. `domain` is that of the operation; empty:
  // ONNX's own.
  std::string add(const std::string& operation, const std::string& name,
                  const std::vector<std::string>& inputs,
                  const std::vector<Attribute>& attributes = {}, const std::string& domain = "");

  // Makes the tensor an output of the graph, of floats, by exactly this name. The names of outputs
  // must have been reserved before anything was added.
  void output(const std::string& name, const std::string& tensor,
              const std::vector<Dimension>& shape);
  void reserve(const std::string& name) { names_.insert(name); }

 private:
  std::string unique(const std::string& name);
  std::string constant(const std::string& name, const std::vector<int64_t>& shape,
                       onnxformat::DataType type, std::string bytes);

  onnxformat::Graph& graph_;
  std::set<std::string> names_;
};

}  // namespace muster::onnx
