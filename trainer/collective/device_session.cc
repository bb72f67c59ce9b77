#include "trainer/collective/device_session.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/error.h"
#include "common/program/stopwatch.h"
#include "common/threads/watched_work.h"
#include "trainer/collective/state_digest.h"
#include "trainer/collective/wire_session.h"

namespace muster::collective {

namespace {

constexpr std::chrono::seconds kLink{30};      // time to link all devices
constexpr std::chrono::seconds kExchange{60};  // time after all members have begun

}  // namespace

DeviceSession::DeviceSession(std::unique_ptr<WireGroup> control, compute::EngineGroup& engines,
                             const GroupShape& shape, int member, uint64_t step,
                             const std::string& link_id, Each each, const Watch& watch)
    : engines_(engines),
      each_(std::move(each)),
      digests_(static_cast<size_t>(shape.replicas_of(member).size())),
      step_(step),
      watch_(&watch),
      until_(Clock::now() + kLink),
      late_(
          "the GPUs of all members were not linked within 30 s (NCCL_DEBUG=INFO makes NCCL say "
          "what it does)"),
      control_(std::move(control)),
      link_(engines.link({.count = shape.replicas,
                          .first = shape.replicas_of(member).begin,
                          .id = link_id,
                          .watch = [this] { look(); }})) {
  // The first exchange makes the connections, and fails if they cannot be made. Its sums are not
  // used.
  each_([this](int device) { link_->ask_sums(device); });
  each_([this](int device) { link_->await_sums(device); });
  until_ = Clock::time_point::max();
  late_ =
      "the GPUs have not exchanged gradients within 60 s, although all members have asked for it";
}

// Ends the wait of a device if the generation is over, a member is gone, or the wait takes too
// long. Each device's thread calls it; from time to time one of them checks.
void DeviceSession::look() {
  WatchedWork::beat();
  if (!looking_.try_lock()) return;
  const MutexLock lock(looking_, std::adopt_lock);
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kGlance;
  if (watch_->ended()) throw Unavailable("the generation is over");
  control_->require_intact();
  if (now > until_) throw Unavailable(late_);
}

Session::StepResult DeviceSession::step(uint64_t step, const Contribution& contribution,
                                        const Arguments& arguments, const Watch& watch) {
  StepResult result;
  watch_ = &watch;
  try {
    each_([this](int device) { link_->ask_sums(device); });
    result.sums = control_->all_reduce(step, contribution, watch);
    result.note = control_->note();
    result.bytes = control_->moved_in_steps() - std::exchange(moved_, control_->moved_in_steps());
    until_ = Clock::now() + kExchange;
    each_([this](int device) { link_->await_sums(device); });
    until_ = Clock::time_point::max();
  } catch (const Unavailable& error) {
    result.outcome = outcome_of(error, watch);
    return result;
  }
  const compute::UpdateArguments update = arguments(result.sums);
  const Stopwatch updating;
  each_([&](int device) { link_->update(device, update); });
  result.update_seconds = updating.seconds();
  ++step_;
  if (control_->compare()) compare_states(*control_, digest(), watch, result);
  return result;
}

Session::Settled DeviceSession::settle() {
  if (link_) link_->abandon();
  control_.reset();  // the other members notice, and close their ends of the link too
  link_.reset();
  return {step_, {}, {}};
}

void DeviceSession::copy(std::span<float> parameters, std::span<const std::span<float>> slots,
                         const Arguments&) {
  engines_.parameters().read({0, parameters.size()}, parameters).wait();
  for (size_t i = 0; i < slots.size(); ++i) read_slot(i, {0, slots[i].size()}, slots[i]);
}

void DeviceSession::read_parameters(compute::Range range, std::span<float> to) {
  engines_.parameters().read(range, to).wait();
}

void DeviceSession::read_slot(size_t index, compute::Range range, std::span<float> to) {
  engines_.slots()[index]->read(range, to).wait();
}

// Returns the digest of our devices' state; a digest that no other member has if the devices'
// states differ.
uint32_t DeviceSession::digest() {
  each_([this](int device) {
    compute::Floats copy(engines_.parameters().size());
    uint32_t& digest = digests_[static_cast<size_t>(device)];
    digest = 0;
    for (const compute::Memory* memory : engines_.state_of(device)) {
      memory->read({0, copy.size()}, copy).wait();
      digest = digest_of(copy, digest);
    }
  });
  const bool equal = std::ranges::adjacent_find(digests_, std::not_equal_to()) == digests_.end();
  return equal ? digests_.front() : ~digests_.front();
}

}  // namespace muster::collective
