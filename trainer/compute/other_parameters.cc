#include "trainer/compute/other_parameters.h"

#include <stdexcept>

namespace muster::compute {

OtherParameters::OtherParameters(Engine& engine, std::span<float> parameters)
    : engine_(engine), before_(engine.parameters().floats()) {
  if (!before_.is_on_host()) {
    const Range whole{0, parameters.size()};
    copy_.resize(parameters.size());
    engine.parameters().read(whole, copy_).wait();
    engine.parameters().write(whole, parameters).wait();
    return;
  }
  HostMemory view(parameters);
  engine.use(view, nullptr);
}

OtherParameters::~OtherParameters() {
  if (!before_.is_on_host()) {
    try {
      engine_.parameters().write({0, copy_.size()}, copy_).wait();
    } catch (const std::runtime_error&) {
      // A device that has failed throws again at the next piece of work.
    }
    return;
  }
  HostMemory view(before_.host());
  engine_.use(view, nullptr);
}

}  // namespace muster::compute
