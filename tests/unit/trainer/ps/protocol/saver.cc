#include "tests/unit/trainer/ps/protocol/saver.h"

#include <utility>

namespace muster::ps::protocol {

void Saver::begin(SimulatedStorage::Folder manifest, std::vector<uint64_t> shard_steps,
                  std::vector<int> serving) {
  shard_steps_ = std::move(shard_steps);
  serving_ = std::move(serving);
  simulation::Saver::begin(std::move(manifest));
}

bool Saver::write(const SimulatedStorage::Folder& folder, const std::string& temporary) {
  if (calls_.active()) {
    calls_.take<WriteReply>();
    return true;
  }
  std::vector<WriteRequest> requests(shard_steps_.size());
  for (size_t shard = 0; shard < requests.size(); ++shard) {
    requests[shard].set_generation(folder.generation);
    requests[shard].set_step(shard_steps_[shard]);
    requests[shard].set_directory(temporary);
    requests[shard].set_shard(static_cast<uint32_t>(shard));
  }
  calls_.start(requests, serving_);
  return false;
}

}  // namespace muster::ps::protocol
