#include "trainer/compute/optimizer.h"

namespace muster::compute {
namespace {

using Names = std::vector<std::string>;

Names names_of(const Sgd& sgd) {
  return sgd.momentum == 0.0f ? Names{} : Names{"v"};
}
Names names_of(const Adam&) {
  return {"m", "v"};
}
Names names_of(const AdamW&) {
  return {"m", "v"};
}
Names names_of(const Lamb&) {
  return {"m", "v"};
}
Names names_of(const RmsProp&) {
  return {"rms", "momentum"};
}

}  // namespace

std::vector<std::string> slot_names_of(const OptimizerSpec& spec) {
  Names names = std::visit([](const auto& kind) { return names_of(kind); }, spec.kind);
  if (spec.average) names.emplace_back(kAverageSlot);
  return names;
}

}  // namespace muster::compute
