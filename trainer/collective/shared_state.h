#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "common/descriptor.h"
#include "common/doorbell.h"
#include "trainer/collective/contribution.h"
#include "trainer/collective/group_shape.h"
#include "trainer/compute/loss_sums.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::collective {

// What the members of one host train on, in memory that all of them map: one copy of parameters and
// optimizer slots, and of each member the sums of its logical replicas' gradients, as few as the
// tree allows. A step:
//   1. Each member writes its sums and contributes. When all have, the step will be made, whoever
//      is lost from then on.
//   2. Each updates its slice of the parameters and slots, tile by tile. When all have, it is done,
//      and the next one begins. An update that needs whole tensors has slices of whole tensors, and
//      each member leaves their ratios here before its first tile: once that is changed, nobody can
//      measure them again.
// All of that is one word, so everybody agrees on it; fence() freezes the word and the members'
// progress for good: what is begun after that has no effect. Of the tile that a member was at, its
// old content is kept in the member's undo log. So a survivor can always extract() one whole step,
// though a member was killed at any instruction, or sleeps and wakes up when nobody counts on it
// any more.
//
// No side trusts another's numbers: sizes come from the shape, which all know from elsewhere.
class SharedState {
 public:
  struct Shape : GroupShape {
    size_t floats = 0;
    size_t slots = 0;
    // Of an update that needs whole tensors: how many there are, and each member's slice. Else
    // none: slices are then as many tiles each.
    size_t tensors = 0;
    std::vector<compute::Range> slices;
    size_t tiles() const { return first_tile(members); }
    size_t first_tile(int member) const;  // of the member's slice; of `members`: tiles()
    compute::Range tile(size_t index) const;
  };
  static constexpr size_t kTile = 1024;  // floats

  // How to find it from another process of the host.
  struct Offer {
    uint32_t pid = 0;
    uint32_t fd = 0;
    uint64_t nonce = 0;
  };

  // All zeros, standing at `step`. `spins`: how often a member looks before it sleeps. Throws
  // Unavailable where the system gives no memory.
  static std::unique_ptr<SharedState> make(const Shape& shape, uint64_t step, uint32_t spins);
  // Throws Invalid saying why it cannot be used: another host, or not a state of this shape.
  static std::unique_ptr<SharedState> open(const Shape& shape, const Offer& offer);
  ~SharedState();
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  Offer offer() const;
  const Shape& shape() const { return shape_; }
  std::span<float> parameters() const;
  std::span<float> slot(size_t index) const;
  // Where the sum under shape().nodes()[index] is to be.
  std::span<float> sum(size_t index) const;
  // Of each tensor, where an update needs whole ones.
  std::span<float> ratios() const;
  // Of a logical replica: what its rows came to.
  void set_sums(int replica, const compute::LossSums& sums) const;
  void set_seconds(int member, double seconds) const;
  double seconds(int member) const;
  void set_note(const Note& note) const;
  Note note() const;
  // Of all, in their order; no rows for what nobody can have come to.
  compute::LossSums sums() const;

  // False where the state is fenced, or not at this step.
  bool contribute(uint64_t step) const;
  bool all_contributed(uint64_t step) const;  // or further
  // A tile of the member's slice is updated next: its old content is logged first. False: fenced.
  bool begin_tile(uint64_t step, int member, size_t tile) const;
  // The member's whole slice is updated. False: fenced.
  bool finish_slice(uint64_t step, int member) const;
  bool done(uint64_t step) const;
  bool fenced() const;

  // Until `ready`, or it is fenced; false after `most`, or when stopped.
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

  // Nobody changes anything that counts after this. Idempotent.
  void fence() const;
  // Precondition of all that follow: fenced. The step whose inputs are whole: one that all have
  // contributed to counts as made.
  uint64_t settled_step() const;
  bool must_complete() const;  // settled_step() was contributed to and is not made everywhere
  // Copies what every tile has of the settled step, or where that must be completed of the one
  // before; returns the tiles that are of the one before.
  std::vector<size_t> extract(std::span<float> parameters,
                              std::span<const std::span<float>> slots) const;

 private:
  struct Header;
  struct Seat;
  // Bytes from the beginning.
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
