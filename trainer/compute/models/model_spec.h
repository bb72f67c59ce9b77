#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/compute/models/activation.h"
#include "trainer/compute/models/target_losses.h"
#include "trainer/detection/anchors.h"
#include "trainer/detection/argmax_matcher.h"
#include "trainer/detection/box_coder.h"
#include "trainer/detection/hard_example_miner.h"
#include "trainer/detection/losses.h"
#include "trainer/detection/multiclass_suppressor.h"

namespace muster::compute {

// A model as plain values: a DAG of layers in topological order. No YAML here; trainer/spec reads
// it.

enum class InitializerKind {
  glorot_uniform,
  he_normal,
  normal,
  truncated_normal,  // a normal number, drawn again if it lies beyond two standard deviations
  uniform,
  zeros,
  constant
};

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
// Inverted dropout: an element is kept with probability 1 - rate and scaled by 1 / (1 - rate); the
// layer is the identity outside training. The mask is a function of (seed, epoch, sample position,
// layer, feature) only.
struct Dropout {
  float rate = 0.5f;
};
// Normalizes each feature over the batch. gamma and beta are trained; the moving mean and variance
// lie in the state segment.
struct BatchNormalization {
  float momentum = 0.99f;
  float epsilon = 1e-3f;
};
struct Add {};          // element-wise sum of its inputs, of one shape
struct Concatenate {};  // along the last axis

// Images are [height, width, channels]; a sample of two axes is taken as one channel. A window
// moves over an image by its strides. With `same` padding the output has ceil(size / stride) places
// along an axis, and zeros surround the image, the smaller half before it, as in TensorFlow; with
// `valid` the output has only the places at which the whole window lies in the image.
enum class Padding { same, valid };
struct Window {
  std::array<int64_t, 2> size{1, 1};  // height, width
  std::array<int64_t, 2> strides{1, 1};
  Padding padding = Padding::same;
};
// y = activation(convolution(x, W) + b); W is [height, width, channels, filters] in C order, b is
// [filters]. The window is not mirrored.
struct Conv2d {
  int64_t filters = 0;
  Window window;
  Activation activation = Activation::linear;
  bool use_bias = true;
  Initializer kernel_initializer;
  Initializer bias_initializer{InitializerKind::zeros, 0.0f};
};
// A convolution of each channel by itself; W is [height, width, channels, 1], b is [channels].
struct DepthwiseConv2d {
  Window window;
  Activation activation = Activation::linear;
  bool use_bias = true;
  Initializer kernel_initializer;
  Initializer bias_initializer{InitializerKind::zeros, 0.0f};
};
// The largest value, or the mean, over the values of each channel that lie in the window and in the
// image.
struct MaxPool {
  Window window;
};
struct AveragePool {
  Window window;
};
struct GlobalAveragePool {};   // the mean of each channel over the whole image: [channels]
struct Flatten {};             // the sample as one vector, in C order
struct Reshape {               // the sample's elements, in C order, in another shape
  std::vector<int64_t> shape;  // one axis may be -1: it gets the remaining factor
};

using LayerKind =
    std::variant<Dense, ActivationLayer, Dropout, BatchNormalization, Add, Concatenate, Conv2d,
                 DepthwiseConv2d, MaxPool, AveragePool, GlobalAveragePool, Flatten, Reshape>;

struct LayerSpec {
  std::string name;  // unique; parameters are named "<name>/kernel" and so on
  LayerKind kind;
  std::vector<std::string> inputs;  // names of earlier layers or "input"; empty: the layer before
  bool trainable = true;            // false: its parameters go to the frozen segment
};

// A loss of one row, computed from the model's output y. The names, labels and metrics of all
// losses are in loss.cc.

// -log of the probability that the softmax of y gives to the row's class.
struct SoftmaxCrossEntropy {
  bool operator==(const SoftmaxCrossEntropy&) const = default;
};
// The mean of (y - target)^2 over the row's targets.
struct MeanSquaredError {
  bool operator==(const MeanSquaredError&) const = default;
};
// Further losses of numbers are in target_losses.h.

// The loss of a single-shot detector (Liu et al.: SSD), as the TF Object Detection API's
// ssd_mobilenet_v1 configures it. A row's targets are an ObjectList. The model's output holds the
// codes of all anchors, [anchors, 4], and then the anchors' logits, [anchors, 1 + classes]; the
// first logit is for the background. A row's loss is the sum, over the anchors that mining selects,
// of
//   classification_weight * (classification loss) + localization_weight * (smooth L1).
// The sum over a batch is divided by the number of anchors that are matched with an object.
struct SsdLoss {
  int64_t classes = 90;
  detection::SsdAnchorSettings anchors;
  // The layers whose outputs [height, width, ...] give the grids of the anchors, one layer for each
  // of anchors.num_layers.
  std::vector<std::string> grids;
  detection::MatcherSettings matcher;
  detection::BoxCoder coder;
  detection::MiningSettings mining;
  detection::ClassificationLoss classification;
  float classification_weight = 1;
  float localization_weight = 1;
  float delta = 1;                            // for smooth L1
  detection::MulticlassSettings suppression;  // used when objects are found, not in training

  bool operator==(const SsdLoss&) const = default;
};

using LossKind = std::variant<SoftmaxCrossEntropy, MeanSquaredError, Huber, BinaryCrossEntropy,
                              Poisson, Quantile, SsdLoss>;

struct ModelSpec {
  std::string name;                  // "mnist-mlp", or "custom"
  std::vector<int64_t> input_shape;  // one sample; {28, 28}, or flat, {784}
  int64_t label_count = 0;           // classes, or floats of a target, as the loss takes them
  std::vector<LayerSpec> layers;     // the loss uses the output of the last layer
  LossKind loss;
};

}  // namespace muster::compute
