#include "trainer/loop/synchronizers/state_snapshot.h"

namespace muster::loop {

StateSnapshot::StateSnapshot(const compute::ParameterLayout& layout,
                             const std::vector<std::string>& slot_names,
                             std::span<const compute::Floats> copies, checkpoint::Position position)
    : state_{layout,
             {0, layout.size()},
             copies.front(),
             {copies.begin() + 1, copies.end()},
             slot_names},
      position_(std::move(position)) {}

void StateSnapshot::write(const std::filesystem::path& directory, checkpoint::Manifest& manifest,
                          double bytes_per_second) {
  limit_.set(bytes_per_second);
  if (hurried_) limit_.lift();
  manifest.files = checkpoint::write_state(directory, state_, 0, 1, limit_);
  manifest.position = position_;
  manifest.shard_steps = {position_.step};
}

void StateSnapshot::hurry() {
  hurried_ = true;
  limit_.lift();
}

}  // namespace muster::loop
