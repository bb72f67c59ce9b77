#pragma once

#include <cstdint>

#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::compute::cpu {

// Apply any activation except softmax, or its gradient, to a block, with Kernels::bias_* and
// *_gradient.
void activate(const Kernels& kernels, Activation activation, int64_t rows, int64_t columns,
              float* y, int64_t ldy, const float* bias);
void activation_gradient(const Kernels& kernels, Activation activation, int64_t rows,
                         int64_t columns, const float* y, int64_t ldy, const float* dy, float* dx,
                         bool accumulate);

}  // namespace muster::compute::cpu
