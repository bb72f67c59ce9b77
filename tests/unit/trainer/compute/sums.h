#pragma once

#include "trainer/compute/loss_sums.h"

namespace muster::compute::testing {

// The sums of a classification.
inline LossSums classified(double loss, int64_t correct, int64_t rows) {
  LossSums sums;
  sums.loss = loss;
  sums.weight = static_cast<double>(rows);
  sums.rows = rows;
  sums.terms[0] = static_cast<double>(correct);
  return sums;
}

}  // namespace muster::compute::testing
