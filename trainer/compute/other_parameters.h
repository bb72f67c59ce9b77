#pragma once

#include <span>

#include "trainer/compute/aligned.h"
#include "trainer/compute/engine.h"

namespace muster::compute {

// While this object lives, an engine computes with other parameters than the trained ones. The
// trained parameters do not change, also for others that read them in the meantime.
class OtherParameters {
 public:
  // `parameters`, layout().size() floats aligned as Floats are, and the engine must outlive it.
  OtherParameters(Engine& engine, std::span<float> parameters);
  ~OtherParameters();
  OtherParameters(const OtherParameters&) = delete;
  OtherParameters& operator=(const OtherParameters&) = delete;

 private:
  Engine& engine_;
  const PlacedFloats before_;  // the memory that the engine used
  Floats copy_;                // a copy of that memory, if the host cannot address it
};

}  // namespace muster::compute
