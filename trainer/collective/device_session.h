#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/threads/mutex.h"
#include "trainer/collective/session.h"
#include "trainer/collective/wire_group.h"
#include "trainer/compute/engine_group.h"

namespace muster::collective {

// The session of members whose GPUs exchange gradients directly (compute::EngineGroup): each GPU
// holds the whole state and makes every update. Everything else that a step needs goes over TCP,
// which also shows when a member is gone. Each logical replica has its own device; its gradients
// are in the engine.
class DeviceSession : public Session {
 public:
  // Runs work(device) for each of this member's devices, on that device's thread.
  using Each = std::function<void(const std::function<void(int)>& work)>;

  // `control` must be connected, with 0 floats. Links the devices of all members by `link_id`; all
  // members have the same number of devices, that of `engines`. The state is that of `step` once
  // the caller has written it to `engines`, which must outlive the session. Throws Unavailable.
  DeviceSession(std::unique_ptr<WireGroup> control, compute::EngineGroup& engines,
                const GroupShape& shape, int member, uint64_t step, const std::string& link_id,
                Each each, const Watch& watch);

  StepResult step(uint64_t step, const Contribution& contribution, const Arguments& arguments,
                  const Watch& watch) override;
  ComputingTime time(int member) const override { return control_->time(member); }
  // Unlinks the devices: the other members have to continue without this one.
  Settled settle() override;
  void copy(std::span<float> parameters, std::span<const std::span<float>> slots,
            const Arguments& arguments) override;
  void read_parameters(compute::Range range, std::span<float> to) override;
  void read_slot(size_t index, compute::Range range, std::span<float> to) override;

 private:
  using Clock = std::chrono::steady_clock;

  void look();
  uint32_t digest();

  compute::EngineGroup& engines_;
  const Each each_;
  std::vector<uint32_t> digests_;  // digest of the state of each of our devices
  uint64_t step_;
  uint64_t moved_ = 0;  // bytes that the results so far have told
  const Watch* watch_;  // watch of the call under way
  Mutex looking_;
  Clock::time_point next_look_ MUSTER_GUARDED_BY(looking_){};
  // The time limit of the current operation, and the message when it is over.
  Clock::time_point until_;
  const char* late_;
  std::unique_ptr<WireGroup> control_;
  // Null once this session is settled.
  std::unique_ptr<compute::EngineGroup::Link> link_;
};

}  // namespace muster::collective
