#pragma once

#include <span>

#include "trainer/compute/cpu/check/sheet.h"

namespace muster::compute::cpu {

// Questions to kernels: work on small inputs, which are the same each time. Two tables of kernels
// give the same answers if both compute correctly.

struct Question {
  const char* kernel;  // the kernel's name
  void (*ask)(Sheet&);
  bool (*is_in)(const Kernels&);  // whether a table has the kernel
};

// One question for each kernel of the table, in its order, and for each function of
// host::Arithmetic.
std::span<const Question> questions();

}  // namespace muster::compute::cpu
