#pragma once

#include <span>

#include "trainer/compute/aligned.h"
#include "trainer/compute/engine.h"

namespace muster::compute {

// While it lives, an engine computes with other parameters than those it is trained with. These
// stay as they are, also where others read them meanwhile.
class OtherParameters {
 public:
  // `parameters`, layout().size() floats aligned as Floats are, and the engine must outlive it.
  OtherParameters(Engine& engine, std::span<float> parameters);
  ~OtherParameters();
  OtherParameters(const OtherParameters&) = delete;
  OtherParameters& operator=(const OtherParameters&) = delete;

 private:
  Engine& engine_;
  std::span<float> before_;  // the memory that the engine used, if the host can address it
  Floats copy_;              // what was in it, if the host cannot
};

}  // namespace muster::compute
