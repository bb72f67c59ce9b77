#include "trainer/compute/layers/layer.h"

namespace muster::compute {
namespace {

ParameterTensor per_feature(const std::string& name, int64_t features, Segment segment,
                            float value) {
  ParameterTensor tensor;
  tensor.name = name;
  tensor.shape = {features};
  tensor.segment = segment;
  tensor.initializer = {InitializerKind::constant, value};
  tensor.weight_decay_multiplier = 0.0f;
  return tensor;
}

}  // namespace

// A frozen layer normalizes by its moving statistics, as Keras does,
// and those are frozen with it.
Described describe(const BatchNormalization& normalization, const LayerSpec& layer,
                   std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  const LayerInput& input = inputs[0];
  if (!(normalization.momentum >= 0.0f && normalization.momentum <= 1.0f)) {
    return Mismatch{-1, "momentum", "a momentum in [0, 1]", std::to_string(normalization.momentum)};
  }
  if (!(normalization.epsilon > 0.0f)) {
    return Mismatch{-1, "epsilon", "a number above 0", std::to_string(normalization.epsilon)};
  }
  const int64_t features = as_features(input.shape).back();
  const Segment trained = layer.trainable ? Segment::trainable : Segment::frozen;
  const Segment state = layer.trainable ? Segment::state : Segment::frozen;
  LayerShape shape{input.shape,
                   {per_feature(layer.name + "/gamma", features, trained, 1.0f),
                    per_feature(layer.name + "/beta", features, trained, 0.0f),
                    per_feature(layer.name + "/moving_mean", features, state, 0.0f),
                    per_feature(layer.name + "/moving_variance", features, state, 1.0f)}};
  shape.parameters[2].state_momentum = normalization.momentum;
  shape.parameters[3].state_momentum = normalization.momentum;
  return shape;
}

}  // namespace muster::compute
