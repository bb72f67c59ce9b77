#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::compute {

// A model as plain values: a DAG of layers in topological order. No YAML here; trainer/spec reads
// it.

enum class Activation { linear, relu, sigmoid, softmax };
enum class Loss { softmax_cross_entropy, mean_squared_error };
enum class InitializerKind { glorot_uniform, he_normal, normal, uniform, zeros, constant };

struct Initializer {
  InitializerKind kind = InitializerKind::glorot_uniform;
  float scale = 1.0f;  // standard deviation, half-width or value, where the kind has one
};

// y = activation(x W + b); W is [inputs, units] in C order, b is [units].
struct Dense {
  int64_t units = 0;
  Activation activation = Activation::linear;
  bool use_bias = true;
  Initializer kernel_initializer;
  Initializer bias_initializer{InitializerKind::zeros, 0.0f};
};
struct ActivationLayer {
  Activation activation = Activation::relu;
};
// Inverted dropout: kept with probability 1 - rate and scaled by 1 / (1 - rate); identity outside
// training. The mask is a function of (seed, epoch, sample position, layer, feature) only.
struct Dropout {
  float rate = 0.5f;
};
// Over the batch, for each feature. gamma and beta are trained; the moving mean and variance live
// in the state segment.
struct BatchNormalization {
  float momentum = 0.99f;
  float epsilon = 1e-3f;
};
struct Add {};          // element-wise sum of its inputs, of one shape
struct Concatenate {};  // along the last axis

using LayerKind =
    std::variant<Dense, ActivationLayer, Dropout, BatchNormalization, Add, Concatenate>;

struct LayerSpec {
  std::string name;  // unique; parameters are named "<name>/kernel" and so on
  LayerKind kind;
  std::vector<std::string> inputs;  // names of earlier layers or "input"; empty: the layer before
  bool trainable = true;            // false: its parameters go to the frozen segment
};

struct ModelSpec {
  std::string name;                  // "mnist-mlp", or "custom"
  std::vector<int64_t> input_shape;  // one sample; {28, 28}, or flat, {784}
  int64_t label_count = 0;  // classes (softmax_cross_entropy) or target floats (mean_squared_error)
  std::vector<LayerSpec> layers;  // the last one's output meets the loss
  Loss loss = Loss::softmax_cross_entropy;
};

}  // namespace muster::compute
