#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/compute/parameter_layout.h"
#include "trainer/ps/shard_link.h"

namespace muster::ps {

// A member's exchange with all shards: what to send and what the replies mean, without knowing what
// carries them. One caller.
class Exchange {
 public:
  using Connect = std::function<std::unique_ptr<ShardLink>(int shard, Bell& bell)>;

  enum class Outcome {
    ok,
    superseded,   // another generation, or we have fallen behind: join again
    broken,       // a shard was lost: join again
    interrupted,  // `stop` was requested
  };
  struct Result {
    Outcome outcome = Outcome::ok;
    uint64_t step = 0;               // committed updates in the parameters
    compute::LossSums sums;          // of all members, as shard 0 has them
    std::optional<uint64_t> ticket;  // async: the next work
    bool finished = false;           // async
  };
  // What ends a wait early; `superseded` is asked a few times a second.
  struct Watch {
    std::stop_token stop;
    std::function<bool()> superseded;
  };

  Exchange(std::vector<compute::Range> ranges, uint32_t rank, bool sync, Connect connect);

  // Opens links to all shards for a generation, dropping what was open.
  void connect(uint64_t generation);
  void close();

  // Fetches the parameters all shards agree on: sync: of the lowest step that any has committed,
  // which the others still hold. Throws Invalid (kProtocol) where a shard rejects us.
  Result align(std::span<float> parameters, const Watch& watch);

  // Pushes gradient sums computed on the parameters of `step` and waits for the parameters after
  // it.
  Result step(uint64_t step, uint64_t ticket, const compute::LossSums& sums,
              std::span<const float> gradients, std::span<float> parameters, const Watch& watch);

 private:
  Result wait(const Watch& watch);
  void pull(size_t shard, const PushHeader& header, std::span<float> parameters);
  std::span<float> part(std::span<float> whole, size_t shard) const;

  const std::vector<compute::Range> ranges_;
  const uint32_t rank_;
  const bool sync_;
  const Connect connect_;
  uint64_t generation_ = 0;
  uint64_t sequence_ = 0;
  Bell bell_;  // outlives the links
  std::vector<std::unique_ptr<ShardLink>> links_;
};

}  // namespace muster::ps
