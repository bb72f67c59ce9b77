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
  std::vector<int64_t> in, out;  // shapes of the first input and of the output

  const double* parameter(const std::string& name) const {
    return parameters.data() + layout.find(name).offset;
  }
};

double activate(Activation activation, double x) {
  if (activation == Activation::relu) return std::max(x, 0.0);
  if (activation == Activation::relu6) return std::clamp(x, 0.0, 6.0);
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
  // An image has a feature for each channel, and many places.
  const size_t features = e.in.size() < 3 ? out[0].size() : size_t(e.in.back());
  const double count = double(out.size() * out[0].size() / features);
  for (size_t c = 0; c < features; ++c) {
    double mean = e.parameter(layer.name + "/moving_mean")[c];
    double variance = e.parameter(layer.name + "/moving_variance")[c];
    const auto each = [&](const auto& function) {
      for (auto& row : out) {
        for (size_t i = c; i < row.size(); i += features) function(row[i]);
      }
    };
    if (e.training && layer.trainable) {
      mean = variance = 0;
      each([&](double x) { mean += x / count; });
      each([&](double x) { variance += (x - mean) * (x - mean) / count; });
    }
    each([&](double& x) {
      x = (x - mean) / std::sqrt(variance + double(kind.epsilon)) * gamma[c] + beta[c];
    });
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
             const Evaluation& e) {
  // An image has as many places as its first two axes say; a vector has one.
  const size_t places = e.out.size() < 3 ? 1 : size_t(e.out[0] * e.out[1]);
  Matrix out(in[0].size());
  for (size_t r = 0; r < out.size(); ++r) {
    for (size_t place = 0; place < places; ++place) {
      for (const Matrix& one : in) {
        const size_t channels = one[r].size() / places;
        const auto from = one[r].begin() + ptrdiff_t(place * channels);
        out[r].insert(out[r].end(), from, from + ptrdiff_t(channels));
      }
    }
  }
  return out;
}

// Calls function(place, y, x, i, j) for each place of the output and each place (i, j) of the
// window that lies on the image, at (y, x).
void slide(const Window& window, const Evaluation& e, const auto& function) {
  const int64_t height = e.in[0], width = e.in[1];
  const auto zeros = [&](size_t axis) {
    const int64_t reach = (e.out[axis] - 1) * window.strides[axis] + window.size[axis];
    return window.padding == Padding::same ? std::max<int64_t>(0, reach - e.in[axis]) / 2 : 0;
  };
  for (int64_t place = 0; place < e.out[0] * e.out[1]; ++place) {
    for (int64_t i = 0; i < window.size[0]; ++i) {
      for (int64_t j = 0; j < window.size[1]; ++j) {
        const int64_t y = place / e.out[1] * window.strides[0] + i - zeros(0);
        const int64_t x = place % e.out[1] * window.strides[1] + j - zeros(1);
        if (y >= 0 && y < height && x >= 0 && x < width) function(place, y * width + x, i, j);
      }
    }
  }
}

int64_t channels_of(const std::vector<int64_t>& shape) {
  return shape.size() == 3 ? shape[2] : 1;
}

size_t elements_of(const std::vector<int64_t>& shape) {
  size_t count = 1;
  for (const int64_t axis : shape) count *= size_t(axis);
  return count;
}

Matrix apply(const Conv2d& layer, const LayerSpec& spec, const std::vector<Matrix>& in,
             const Evaluation& e) {
  Matrix out;
  const double* kernel = e.parameter(spec.name + "/kernel");
  const int64_t channels = channels_of(e.in), filters = layer.filters;
  for (const auto& x : in[0]) {
    std::vector<double> y(elements_of(e.out));
    slide(layer.window, e, [&](int64_t place, int64_t from, int64_t i, int64_t j) {
      for (int64_t c = 0; c < channels; ++c) {
        const double* w = kernel + ((i * layer.window.size[1] + j) * channels + c) * filters;
        for (int64_t f = 0; f < filters; ++f)
          y[size_t(place * filters + f)] += x[size_t(from * channels + c)] * w[f];
      }
    });
    for (size_t k = 0; k < y.size(); ++k) {
      const double bias =
          layer.use_bias ? e.parameter(spec.name + "/bias")[k % size_t(filters)] : 0.0;
      y[k] = activate(layer.activation, y[k] + bias);
    }
    out.push_back(y);
  }
  return out;
}

Matrix apply(const DepthwiseConv2d& layer, const LayerSpec& spec, const std::vector<Matrix>& in,
             const Evaluation& e) {
  Matrix out;
  const double* kernel = e.parameter(spec.name + "/kernel");
  const int64_t channels = channels_of(e.in);
  for (const auto& x : in[0]) {
    std::vector<double> y(elements_of(e.out));
    slide(layer.window, e, [&](int64_t place, int64_t from, int64_t i, int64_t j) {
      for (int64_t c = 0; c < channels; ++c)
        y[size_t(place * channels + c)] +=
            x[size_t(from * channels + c)] * kernel[(i * layer.window.size[1] + j) * channels + c];
    });
    for (size_t k = 0; k < y.size(); ++k) {
      const double bias =
          layer.use_bias ? e.parameter(spec.name + "/bias")[k % size_t(channels)] : 0.0;
      y[k] = activate(layer.activation, y[k] + bias);
    }
    out.push_back(y);
  }
  return out;
}

Matrix pooled(const Window& window, bool largest, const std::vector<Matrix>& in,
              const Evaluation& e) {
  Matrix out;
  const int64_t channels = channels_of(e.in);
  for (const auto& x : in[0]) {
    std::vector<double> y(elements_of(e.out), largest ? -1e300 : 0.0), count(y.size());
    slide(window, e, [&](int64_t place, int64_t from, int64_t, int64_t) {
      for (int64_t c = 0; c < channels; ++c) {
        double& to = y[size_t(place * channels + c)];
        const double value = x[size_t(from * channels + c)];
        to = largest ? std::max(to, value) : to + value;
        count[size_t(place * channels + c)] += 1;
      }
    });
    if (!largest) {
      for (size_t k = 0; k < y.size(); ++k) y[k] /= count[k];
    }
    out.push_back(y);
  }
  return out;
}

Matrix apply(const MaxPool& pool, const LayerSpec&, const std::vector<Matrix>& in,
             const Evaluation& e) {
  return pooled(pool.window, true, in, e);
}

Matrix apply(const AveragePool& pool, const LayerSpec&, const std::vector<Matrix>& in,
             const Evaluation& e) {
  return pooled(pool.window, false, in, e);
}

Matrix apply(const GlobalAveragePool&, const LayerSpec&, const std::vector<Matrix>& in,
             const Evaluation& e) {
  Evaluation whole = e;
  whole.out = {1, 1, channels_of(e.in)};
  return pooled({{e.in[0], e.in[1]}, {1, 1}, Padding::valid}, false, in, whole);
}

Matrix apply(const Flatten&, const LayerSpec&, const std::vector<Matrix>& in, const Evaluation&) {
  return in[0];
}

Matrix apply(const Reshape&, const LayerSpec&, const std::vector<Matrix>& in, const Evaluation&) {
  return in[0];
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

// Return the loss of one output y and its target t.
double error_of(const MeanSquaredError&, double y, double t) {
  return (y - t) * (y - t);
}
double error_of(const Huber& huber, double y, double t) {
  const double delta = double(huber.delta), d = std::abs(y - t);
  return d <= delta ? d * d / 2 : delta * (d - delta / 2);
}
double error_of(const BinaryCrossEntropy& loss, double y, double t) {
  const double p = 1 / (1 + std::exp(-y));
  return -double(loss.positive_weight) * t * std::log(p) - (1 - t) * std::log(1 - p);
}
double error_of(const Poisson&, double y, double t) {
  return std::exp(y) - t * y;
}
double error_of(const Quantile& loss, double y, double t) {
  const double q = double(loss.quantiles[0]);
  return std::max(q * (t - y), (q - 1) * (t - y));
}

template <class Loss>
double loss_of(const Loss& loss, const ModelSpec&, const std::vector<double>& y, const Batch& batch,
               size_t row) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i)
    sum += error_of(loss, y[i], double(batch.targets[row][i])) / double(y.size());
  return sum;
}

double loss_of(const SoftmaxCrossEntropy&, const ModelSpec& model, const std::vector<double>& y,
               const Batch& batch, size_t row) {
  if (ends_in_softmax(model)) return -std::log(y[size_t(batch.labels[row])]);
  const double most = *std::max_element(y.begin(), y.end());
  double sum = 0;
  for (double x : y) sum += std::exp(x - most);
  return std::log(sum) - (y[size_t(batch.labels[row])] - most);
}

// ssd_loss_test.cc has a reference of its own.
double loss_of(const SsdLoss&, const ModelSpec&, const std::vector<double>&, const Batch&, size_t) {
  throw std::logic_error("no reference for a detector's loss here");
}

double loss_of(const ModelSpec& model, const std::vector<double>& y, const Batch& batch,
               size_t row) {
  return std::visit([&](const auto& loss) { return loss_of(loss, model, y, batch, row); },
                    model.loss);
}

}  // namespace

double reference_loss(const ModelSpec& model, const ParameterLayout& layout,
                      const std::vector<double>& parameters, const Batch& batch, bool training) {
  Evaluation evaluation{layout, parameters, training, {}, {}};
  std::map<std::string, Matrix> values;
  std::map<std::string, std::vector<int64_t>> shapes;
  const Graph graph = build_graph(model);
  shapes["input"] = model.input_shape;
  for (const Node& node : graph.nodes) shapes[node.name] = graph.values[size_t(node.output)].shape;
  Matrix input(size_t(batch.rows), std::vector<double>(elements_of(model.input_shape)));
  for (size_t r = 0; r < input.size(); ++r) {
    for (size_t i = 0; i < input[r].size(); ++i) input[r][i] = value_of(batch, r, i);
  }
  values["input"] = input;
  std::string last = "input";
  for (const LayerSpec& layer : model.layers) {
    std::vector<Matrix> in;
    if (layer.inputs.empty()) in.push_back(values.at(last));
    for (const std::string& name : layer.inputs) in.push_back(values.at(name));
    evaluation.in = shapes.at(layer.inputs.empty() ? last : layer.inputs[0]);
    evaluation.out = shapes.at(layer.name);
    values[layer.name] = std::visit(
        [&](const auto& kind) { return apply(kind, layer, in, evaluation); }, layer.kind);
    last = layer.name;
  }
  double sum = 0;
  for (size_t r = 0; r < input.size(); ++r) sum += loss_of(model, values.at(last)[r], batch, r);
  return sum;
}

}  // namespace muster::compute::testing
