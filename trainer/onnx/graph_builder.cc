#include "trainer/onnx/graph_builder.h"

#include <bit>

namespace muster::onnx {

namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

template <typename Value>
std::string bytes_of(std::span<const Value> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

void describe(onnxformat::ValueInfo& info, const std::string& name, onnxformat::DataType type,
              const std::vector<Dimension>& shape) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (const Dimension& dimension : shape) {
    auto& to = *tensor.mutable_shape()->add_dim();
    if (const auto* size = std::get_if<int64_t>(&dimension))
      to.set_dim_value(*size);
    else
      to.set_dim_param(std::get<std::string>(dimension));
  }
}

void set(onnxformat::Attribute& to, float value) {
  to.set_type(onnxformat::Attribute::FLOAT);
  to.set_f(value);
}
void set(onnxformat::Attribute& to, int64_t value) {
  to.set_type(onnxformat::Attribute::INT);
  to.set_i(value);
}
void set(onnxformat::Attribute& to, const std::vector<int64_t>& values) {
  to.set_type(onnxformat::Attribute::INTS);
  to.mutable_ints()->Add(values.begin(), values.end());
}
void set(onnxformat::Attribute& to, const std::vector<std::string>& values) {
  to.set_type(onnxformat::Attribute::STRINGS);
  to.mutable_strings()->Add(values.begin(), values.end());
}

}  // namespace

std::string GraphBuilder::unique(const std::string& name) {
  std::string candidate = name;
  for (int number = 2; !names_.insert(candidate).second; ++number)
    candidate = name + "_" + std::to_string(number);
  return candidate;
}

std::string GraphBuilder::input(const std::string& name, onnxformat::DataType type,
                                const std::vector<Dimension>& shape) {
  const std::string own = unique(name);
  describe(*graph_.add_input(), own, type, shape);
  return own;
}

std::string GraphBuilder::constant(const std::string& name, const std::vector<int64_t>& shape,
                                   onnxformat::DataType type, std::string bytes) {
  onnxformat::Tensor& tensor = *graph_.add_initializer();
  tensor.set_name(unique(name));
  tensor.set_data_type(type);
  tensor.mutable_dims()->Add(shape.begin(), shape.end());
  tensor.set_raw_data(std::move(bytes));
  return tensor.name();
}

std::string GraphBuilder::constant(const std::string& name, const std::vector<int64_t>& shape,
                                   std::span<const float> values) {
  return constant(name, shape, onnxformat::FLOAT, bytes_of(values));
}

std::string GraphBuilder::constant(const std::string& name, const std::vector<int64_t>& shape,
                                   std::span<const double> values) {
  return constant(name, shape, onnxformat::DOUBLE, bytes_of(values));
}

std::string GraphBuilder::constant(const std::string& name, const std::vector<int64_t>& values) {
  return constant(name, {static_cast<int64_t>(values.size())}, onnxformat::INT64,
                  bytes_of(std::span(values)));
}

std::string GraphBuilder::add(const std::string& operation, const std::string& name,
                              const std::vector<std::string>& inputs,
                              const std::vector<Attribute>& attributes, const std::string& domain) {
  onnxformat::Node& node = *graph_.add_node();
  node.set_op_type(operation);
  node.set_domain(domain);
  node.set_name(unique(name));
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(node.name());
  for (const auto& [key, value] : attributes) {
    onnxformat::Attribute& to = *node.add_attribute();
    to.set_name(key);
    std::visit([&](const auto& of_kind) { set(to, of_kind); }, value);
  }
  return node.name();
}

void GraphBuilder::output(const std::string& name, const std::string& tensor,
                          const std::vector<Dimension>& shape) {
  onnxformat::Node& node = *graph_.add_node();
  node.set_op_type("Identity");
  node.set_name(unique(name));
  node.add_input(tensor);
  node.add_output(name);
  describe(*graph_.add_output(), name, onnxformat::FLOAT, shape);
}

}  // namespace muster::onnx
