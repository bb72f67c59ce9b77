#pragma once

#include "trainer/compute/cuda/grid.h"
#include "trainer/detection/box.h"

namespace muster::compute::cuda {

// The loss of a single-shot detector, step by step. Each step is documented at the class or
// function of trainer/detection that does the same on the host. Here the losses of anchors are
// added up in float32, on the host in float64: if two losses are nearly equal, the GPU may find
// another anchor harder than the host.

MUSTER_INLINE detection::Box box_in(const float* box) {
  return {box[0], box[1], box[2], box[3]};
}
MUSTER_INLINE void write_box(const detection::Box& box, float* to) {
  to[0] = box.ymin;
  to[1] = box.xmin;
  to[2] = box.ymax;
  to[3] = box.xmax;
}

// Memory for each anchor of each image, [rows, count], and data that are the same for all images.
struct Anchors {
  int64_t count;
  const float* boxes;    // [count, 4]
  int32_t* matches;      // the matched object, kUnmatched or kIgnored
  int32_t* claimed_by;   // the object that claims the anchor, or kUnmatched
  int32_t* labels;       // the logit that should be large
  int32_t* ranks;        // the anchor's rank by falling loss
  int32_t* by_rank;      // the anchor of each rank
  int32_t* states;       // kUndecided, kSelected, ...
  int32_t* decisions;    // the next states
  float* similarities;   // similarity to the matched object
  float* class_weights;  // factor of the class loss (code_weights: of the code loss)
  float* code_weights;
  float* codes;  // [rows, count, 4], the matched object's
  float* class_losses;
  float* code_losses;
  float* boxes_found;  // [rows, count, 4], the decoded predictions, upright
  float* areas;  // areas of the predicted boxes; 0: the box neither suppresses nor is suppressed
  float* class_scales;  // factor of the gradients; 0 for an anchor that is left out
  float* code_scales;
};

}  // namespace muster::compute::cuda
