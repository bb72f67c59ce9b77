#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "common/system/descriptor.h"
#include "common/threads/doorbell.h"
#include "trainer/collective/contribution.h"
#include "trainer/collective/group_shape.h"
#include "trainer/compute/loss_sums.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::collective {

// The training state of members on one host, in memory that all of them map: one copy of parameters
// and optimizer slots, and for each member the sums of its logical replicas' gradients, as few sums
// as the tree allows. A step has two parts: 1. Each member writes its sums and contributes. When
// all members have contributed, the step will be made, even if members are lost from then on.
//   2. Each updates its slice of the parameters and slots, tile by tile. When all have, it is done,
//      and the next one begins. An update that needs whole tensors has slices of whole tensors, and
//      each member leaves their ratios here before its first tile: once that is changed, nobody can
//      measure them again.
// One word holds this progress, so all members agree on it. fence() freezes the word and the
// members' progress for good: what is begun after that has no effect. Each member's undo log keeps
// the old content of the tile that it is updating. So a survivor can always extract() one whole
// step, even if a member was killed at any instruction, or wakes up after the others have given up
// on it.
//
// No member trusts sizes in the memory: they come from the shape, which all members know from
// another source.
class SharedState {
 public:
  struct Shape : GroupShape {
    size_t floats = 0;
    size_t slots = 0;
    // The number of tensors and each member's slice, for an update that needs whole tensors.
    // Otherwise zero and empty: every slice then has the same number of tiles.
    size_t tensors = 0;
    std::vector<compute::Range> slices;
    size_t tiles() const { return first_tile(members); }
    size_t first_tile(int member) const;  // of the member's slice; for `members`: tiles()
    compute::Range tile(size_t index) const;
  };
  static constexpr size_t kTile = 1024;  // floats

  // The data that another process of the host needs to open the memory.
  struct Offer {
    uint32_t pid = 0;
    uint32_t fd = 0;
    uint64_t nonce = 0;
  };

  // Makes a state of zeros at `step`. `spins` is the number of looks before a member sleeps. Throws
  // Unavailable if the system has no memory left.
  static std::unique_ptr<SharedState> make(const Shape& shape, uint64_t step, uint32_t spins);
  // Throws Invalid with the reason why the offer cannot be used: another host, or not a state of
  // this shape.
  static std::unique_ptr<SharedState> open(const Shape& shape, const Offer& offer);
  ~SharedState();
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  Offer offer() const;
  const Shape& shape() const { return shape_; }
  std::span<float> parameters() const;
  std::span<float> slot(size_t index) const;
  // The memory for the sum of shape().nodes()[index].
  std::span<float> sum(size_t index) const;
  // One ratio for each tensor; empty unless the update needs whole tensors.
  std::span<float> ratios() const;
  // Sets the loss sums of a logical replica's rows.
  void set_sums(int replica, const compute::LossSums& sums) const;
  void set_time(int member, const ComputingTime& time) const;
  ComputingTime time(int member) const;
  void set_note(const Note& note) const;
  Note note() const;
  // Adds up the sums of all replicas, in their order; impossible sums are left out.
  compute::LossSums sums() const;

  // Returns false if the state is fenced or not at this step.
  bool contribute(uint64_t step) const;
  bool all_contributed(uint64_t step) const;  // also true if the state is further
  // Saves the old content of a tile of the member's slice in the undo log before it is updated.
  // Returns false if fenced.
  bool begin_tile(uint64_t step, int member, size_t tile) const;
  // Notes that the member's whole slice is updated. Returns false if fenced.
  bool finish_slice(uint64_t step, int member) const;
  bool done(uint64_t step) const;
  bool fenced() const;

  // Waits until `ready` returns true or the state is fenced. Returns false after `most` or a stop.
  template <class Ready>
  bool wait(Ready ready, const std::stop_token& stop, std::chrono::milliseconds most) const {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point until = Clock::now() + most;
    for (;;) {
      const uint32_t seen = rung(bell());
      if (fenced() || ready()) return true;
      const auto left = until - Clock::now();
      if (stop.stop_requested() || left <= Clock::duration::zero()) return false;
      wait_for_ring(bell(), seen, left, spins());
    }
  }
  void wake() const;

  // Freezes the state: no change after this call has any effect. Idempotent.
  void fence() const;
  // Precondition of this and the functions below: fenced. Returns the step of the state; a step to
  // which all members have contributed counts as made.
  uint64_t settled_step() const;
  bool must_complete() const;  // settled_step() has all contributions, but is not made everywhere
  // Copies every tile: its content at the settled step or, if the tile must still be completed, at
  // the step before. Returns the tiles copied at the step before.
  std::vector<size_t> extract(std::span<float> parameters,
                              std::span<const std::span<float>> slots) const;

 private:
  struct Header;
  struct Seat;
  // Offsets and sizes in bytes; offsets count from the beginning of the memory.
  struct Places {
    explicit Places(const Shape& shape);
    size_t seats, sums, ratios, undo, undo_size, parameters, buffer_size, size;
  };
  SharedState(const Shape& shape, Descriptor memory);
  Header& header() const;
  Seat& seat(int member) const;
  Doorbell& bell() const;
  uint32_t spins() const;
  std::span<float> buffer(size_t index) const;
  float* undo(int member, size_t parity) const;

  const Shape shape_;
  const Places places_;
  Descriptor memory_;
  std::byte* base_;
};

}  // namespace muster::collective
