#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "trainer/compute/engine.h"

namespace muster::compute::cuda {

// The data that one run of a program works on. Other data that change from step to step lie in the
// GPU's memory (StepData in context.h), so that the work of a step can be recorded.
struct Step {
  int64_t rows = 0;
  bool training = false;
  // Which of two sets of host memory the step uses: 0 or 1. A step that is asked for before the
  // previous step is done uses the other set.
  int turn = 0;
  float* parameters = nullptr;
  float* gradients = nullptr;
};

using Work = std::function<void(const Step&)>;

// An ordered list of functions that ask the GPU for work.
class Program {
 public:
  void add(Work work) { phases_.push_back({std::move(work), 0}); }
  // Declares that gradients [0, end) are complete after the last phase added.
  void completes(size_t end) { phases_.back().complete = end; }

  // Calls told(end) after each phase that completes gradients, if there is such a function.
  void run(const Step& step, const std::function<void(size_t end)>& told = {}) const {
    for (const Phase& phase : phases_) {
      phase.work(step);
      if (told && phase.complete > 0) told(phase.complete);
    }
  }

 private:
  struct Phase {
    Work work;
    size_t complete;  // floats of the gradients; 0: as many as before
  };
  std::vector<Phase> phases_;
};

}  // namespace muster::compute::cuda
