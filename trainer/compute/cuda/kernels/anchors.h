#pragma once

#include "trainer/compute/cuda/grid.h"
#include "trainer/detection/box.h"

namespace muster::compute::cuda {

// The loss of a single-shot detector, step by step. What a step computes is said by the class or
// the function of trainer/detection that does it on the host. Here the losses of anchors are added
// up in float32, and there in float64: where two are nearly the same, another one may be harder.

MUSTER_INLINE detection::Box box_in(const float* box) {
  return {box[0], box[1], box[2], box[3]};
}
MUSTER_INLINE void write_box(const detection::Box& box, float* to) {
  to[0] = box.ymin;
  to[1] = box.xmin;
  to[2] = box.ymax;
  to[3] = box.xmax;
}

// Memory for each anchor of each image, [rows, count], and what is the same for all images.
struct Anchors {
  int64_t count;
  const float* boxes;    // [count, 4]
  int32_t* matches;      // the matched object, kUnmatched or kIgnored
  int32_t* claimed_by;   // the object that claims it, or kUnmatched
  int32_t* labels;       // the logit that should be large
  int32_t* ranks;        // among the anchors by falling loss
  int32_t* by_rank;      // the anchor of each rank
  int32_t* states;       // kUndecided, kSelected, ...
  int32_t* decisions;    // the next states
  float* similarities;   // to the matched object
  float* class_weights;  // the loss is multiplied by it, as code_weights
  float* code_weights;
  float* codes;  // [rows, count, 4], the matched object's
  float* class_losses;
  float* code_losses;
  float* boxes_found;   // [rows, count, 4], the decoded predictions, upright
  float* areas;         // theirs; 0 where the box neither suppresses nor is suppressed
  float* class_scales;  // the gradients are multiplied by it; 0 for an anchor that is left out
  float* code_scales;
};

}  // namespace muster::compute::cuda
