#pragma once

#include <span>
#include <vector>

#include "trainer/compute/graph.h"
#include "trainer/detection/multiclass_suppressor.h"

namespace muster::compute {

// Finds the objects in a detector's outputs. Only one thread at a time may use an ObjectFinder.
class ObjectFinder {
 public:
  // Throws Invalid as anchors_of() does.
  ObjectFinder(const SsdLoss& loss, const Graph& graph);

  size_t outputs() const { return anchors_.size() / 4 * (4 + columns_); }
  // `outputs` are the outputs for one image: outputs() floats, codes and then logits. Returns the
  // objects, sorted by falling score; labels count from 0 without the background, and boxes are
  // relative to the image. The span stays valid until the next call.
  std::span<const detection::Detection> find(std::span<const float> outputs);

 private:
  const std::vector<float> anchors_;
  const detection::BoxCoder coder_;
  const detection::ClassificationLoss classification_;
  const size_t columns_;  // columns of the logits: the background and the classes
  detection::MulticlassSuppressor suppressor_;
  std::vector<float> boxes_, scores_;
  std::vector<detection::Detection> found_;
};

}  // namespace muster::compute
