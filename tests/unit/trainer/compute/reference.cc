#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "tests/unit/trainer/compute/support.h"

namespace muster::compute::testing {
namespace {

using Matrix = std::vector<std::vector<double>>;  // rows of features

struct Evaluation {
  const ParameterLayout& layout;
  const std::vector<double>& parameters;
  bool training;

  const double* parameter(const std::string& name) const {
    return parameters.data() + layout.find(name).offset;
  }
};

double activate(Activation activation, double x) {
  if (activation == Activation::relu) return std::max(x, 0.0);
  if (activation == Activation::sigmoid) return 1.0 / (1.0 + std::exp(-x));
  return x;
}

void softmax(std::vector<double>& row) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& x : row) sum += x = std::exp(x - most);
  for (double& x : row) x /= sum;
}

Matrix apply(const Dense& dense, const LayerSpec& layer, const std::vector<Matrix>& in,
             const Evaluation& e) {
  Matrix out;
  const size_t units = size_t(dense.units);
  const double* kernel = e.parameter(layer.name + "/kernel");
  const double* bias = dense.use_bias ? e.parameter(layer.name + "/bias") : nullptr;
  for (const auto& x : in[0]) {
    std::vector<double> y(units);
    for (size_t k = 0; k < x.size(); ++k) {
      for (size_t j = 0; j < units; ++j) y[j] += x[k] * kernel[k * units + j];
    }
    for (size_t j = 0; j < units; ++j) {
      y[j] = activate(dense.activation, y[j] + (bias == nullptr ? 0.0 : bias[j]));
    }
    if (dense.activation == Activation::softmax) softmax(y);
    out.push_back(y);
  }
  return out;
}

Matrix apply(const ActivationLayer& kind, const LayerSpec&, const std::vector<Matrix>& in,
             const Evaluation&) {
  Matrix out = in[0];
  for (auto& row : out) {
    for (double& x : row) x = activate(kind.activation, x);
    if (kind.activation == Activation::softmax) softmax(row);
  }
  return out;
}

Matrix apply(const Dropout&, const LayerSpec&, const std::vector<Matrix>& in, const Evaluation&) {
  return in[0];
}

Matrix apply(const BatchNormalization& kind, const LayerSpec& layer, const std::vector<Matrix>& in,
             const Evaluation& e) {
  Matrix out = in[0];
  const double* gamma = e.parameter(layer.name + "/gamma");
  const double* beta = e.parameter(layer.name + "/beta");
  for (size_t c = 0; c < out[0].size(); ++c) {
    double mean = e.parameter(layer.name + "/moving_mean")[c];
    double variance = e.parameter(layer.name + "/moving_variance")[c];
    if (e.training && layer.trainable) {
      mean = variance = 0;
      for (const auto& row : in[0]) mean += row[c] / double(out.size());
      for (const auto& row : in[0])
        variance += (row[c] - mean) * (row[c] - mean) / double(out.size());
    }
    for (auto& row : out) {
      row[c] = (row[c] - mean) / std::sqrt(variance + double(kind.epsilon)) * gamma[c] + beta[c];
    }
  }
  return out;
}

Matrix apply(const Add&, const LayerSpec&, const std::vector<Matrix>& in, const Evaluation&) {
  Matrix out = in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    for (size_t r = 0; r < out.size(); ++r) {
      for (size_t c = 0; c < out[r].size(); ++c) out[r][c] += in[i][r][c];
    }
  }
  return out;
}

Matrix apply(const Concatenate&, const LayerSpec&, const std::vector<Matrix>& in,
             const Evaluation&) {
  Matrix out = in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    for (size_t r = 0; r < out.size(); ++r) {
      out[r].insert(out[r].end(), in[i][r].begin(), in[i][r].end());
    }
  }
  return out;
}

double value_of(const Batch& batch, size_t row, size_t i) {
  const void* from = batch.features[row];
  const float x = batch.type == ElementType::uint8 ? static_cast<const uint8_t*>(from)[i]
                                                   : static_cast<const float*>(from)[i];
  return double(x * batch.scale + batch.offset);
}

bool ends_in_softmax(const ModelSpec& model) {
  const LayerKind& kind = model.layers.back().kind;
  if (const Dense* dense = std::get_if<Dense>(&kind))
    return dense->activation == Activation::softmax;
  const auto* activation = std::get_if<ActivationLayer>(&kind);
  return activation != nullptr && activation->activation == Activation::softmax;
}

// Returns the loss of one target.
double error_of(const LossKind& loss, double d) {
  const auto* huber = std::get_if<Huber>(&loss);
  if (!huber) return d * d;
  const double delta = double(huber->delta);
  return std::abs(d) <= delta ? d * d / 2 : delta * (std::abs(d) - delta / 2);
}

double loss_of(const ModelSpec& model, const std::vector<double>& y, const Batch& batch,
               size_t row) {
  if (!std::holds_alternative<SoftmaxCrossEntropy>(model.loss)) {
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i)
      sum += error_of(model.loss, y[i] - double(batch.targets[row][i])) / double(y.size());
    return sum;
  }
  if (ends_in_softmax(model)) return -std::log(y[size_t(batch.labels[row])]);
  const double most = *std::max_element(y.begin(), y.end());
  double sum = 0;
  for (double x : y) sum += std::exp(x - most);
  return std::log(sum) - (y[size_t(batch.labels[row])] - most);
}

}  // namespace

double reference_loss(const ModelSpec& model, const ParameterLayout& layout,
                      const std::vector<double>& parameters, const Batch& batch, bool training) {
  const Evaluation evaluation{layout, parameters, training};
  std::map<std::string, Matrix> values;
  Matrix input(size_t(batch.rows), std::vector<double>(size_t(model.input_shape[0])));
  for (size_t r = 0; r < input.size(); ++r) {
    for (size_t i = 0; i < input[r].size(); ++i) input[r][i] = value_of(batch, r, i);
  }
  values["input"] = input;
  std::string last = "input";
  for (const LayerSpec& layer : model.layers) {
    std::vector<Matrix> in;
    if (layer.inputs.empty()) in.push_back(values.at(last));
    for (const std::string& name : layer.inputs) in.push_back(values.at(name));
    values[layer.name] = std::visit(
        [&](const auto& kind) { return apply(kind, layer, in, evaluation); }, layer.kind);
    last = layer.name;
  }
  double sum = 0;
  for (size_t r = 0; r < input.size(); ++r) sum += loss_of(model, values.at(last)[r], batch, r);
  return sum;
}

}  // namespace muster::compute::testing
