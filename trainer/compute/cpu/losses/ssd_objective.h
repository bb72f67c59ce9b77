#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/compute/graph.h"

namespace muster::compute::cpu {

// The loss of a single-shot detector and its gradient, in the host's memory; see SsdLoss. All
// memory is allocated by the constructor.
class SsdObjective {
 public:
  static constexpr int64_t kTerms = 2;  // classification, localization

  // For batches of up to `max_rows` rows, on `threads` threads. Throws Invalid if the model's
  // output does not fit the anchors.
  SsdObjective(const SsdLoss& loss, const Graph& graph, int64_t max_rows, int threads);
  ~SsdObjective();

  // Decides the targets of the anchors of each image in a batch. Returns the divisor of the loss:
  // the number of anchors that are matched with an object that counts.
  double prepare(const Batch& batch);
  // Writes the gradient of a row's output and its terms, whose sum is its loss. The batch must be
  // prepared. Threads may call row() at the same time, each with its own number `thread`.
  void row(size_t row, int thread, const float* output, float* gradient,
           std::span<float> terms) const;

 private:
  struct Targets;
  class Teacher;
  class Workspace;

  const SsdLoss loss_;
  const std::vector<float> anchors_;
  const size_t floats_;  // floats of a row's target
  const std::unique_ptr<Teacher> teacher_;
  std::vector<Targets> targets_;               // one for each row
  mutable std::vector<Workspace> workspaces_;  // one for each thread
};

}  // namespace muster::compute::cpu
