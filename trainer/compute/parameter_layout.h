#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

// The place of every parameter of a model in one flat float32 buffer. Gradients and each optimizer
// slot are buffers of the same layout. The order is reverse-layer (the last layer's parameters
// first), so that a prefix is complete early in the backward pass. There are three segments, one
// after the other: trainable, frozen, state. Tensors start at multiples of 64 floats (256 bytes);
// the padding between them is zero and stays zero. A ps shard, a collective's bucket and an
// optimizer's launch are ranges of the buffer.

enum class Segment { trainable, frozen, state };

// The floats of a row: the last axis of a tensor; one float where a tensor has one axis or none.
inline int64_t row_floats(const std::vector<int64_t>& shape) {
  return shape.size() < 2 ? 1 : shape.back();
}

struct Range {
  size_t begin = 0;  // first float
  size_t end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

struct ParameterTensor {
  std::string name;            // "hidden_1/kernel"
  std::vector<int64_t> shape;  // C order
  Segment segment = Segment::trainable;
  size_t offset = 0;  // in floats, a multiple of 64
  size_t count = 0;   // product of shape
  Initializer initializer;
  float weight_decay_multiplier = 1.0f;  // 0 for biases and normalization
  // Whether L2 without a pattern regularizes this tensor: true for the kernels of dense and conv2d
  // layers, as in the TF Object Detection API.
  bool regularized = false;
  float state_momentum = 0.0f;  // state segment: new = momentum * old + (1 - momentum) * batch

  Range range() const { return {offset, offset + count}; }
};

class ParameterLayout {
 public:
  static constexpr size_t kAlignment = 64;  // floats

  // Assigns offsets to `tensors`, which are given in forward layer order. Throws Invalid on a
  // duplicate name.
  explicit ParameterLayout(std::vector<ParameterTensor> tensors);

  const std::vector<ParameterTensor>& tensors() const { return tensors_; }  // in buffer order
  const ParameterTensor& find(const std::string& name) const;  // Throws Invalid if there is none
  Range segment(Segment segment) const;
  size_t size() const { return size_; }  // floats, padding included: the length of every buffer
  size_t parameter_count() const;        // without padding

  // Cuts the buffer into `shards` contiguous ranges of nearly equal size. The ranges consist of
  // whole rows of tensors, or of whole tensors. Some ranges may be empty if there are fewer rows,
  // or tensors, than shards.
  enum class Borders { rows, tensors };
  std::vector<Range> partition(int shards, Borders borders = Borders::rows) const;

  // Returns the SHA-256 of names, shapes, segments and offsets. Two replicas with the same
  // fingerprint may exchange buffers.
  std::string fingerprint() const;

 private:
  std::vector<ParameterTensor> tensors_;
  Range segments_[3];
  size_t size_ = 0;
};

}  // namespace muster::compute
