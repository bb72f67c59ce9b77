#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "trainer/ps/shard/shard.h"

namespace muster::ps {

// Decides how pushes become updates of a shard, and which requests are answered when. A policy is a
// class in a separate file, with a maker function that is declared below and called by make() in
// shard.cc.
class ShardPolicy {
 public:
  using Answer = Shard::Answer;
  using Answers = Shard::Answers;
  using Buffers = Shard::Buffers;

  // The shard that a policy decides for, and what the policy may change of it.
  struct Access {
    const Shard& shard;
    Shard::Counts& counts;
    Tickets& tickets;
    ShardUpdate& update;
    // Makes an update with the sum of the gradients, and writes the parameters after it to each of
    // the copies too. Returns false if there are no rows: the parameters and the copies then stay
    // unchanged. Each of them has as many floats as the shard.
    std::function<bool(const ForwardUpdate&, ShardUpdate::Gradients, ShardUpdate::Copies)> apply;
  };

  explicit ShardPolicy(Access access)
      : shard(access.shard),
        counts(access.counts),
        tickets(access.tickets),
        apply(std::move(access.apply)),
        update_(access.update) {}
  virtual ~ShardPolicy() = default;
  virtual bool lockstep() const { return false; }  // see Shard::lockstep(); never changes

  // Called when the shard has been loaded: forgets all earlier pushes.
  virtual void forget() {}
  // Called when a generation with ranks below `members` opens. Members that still wait are answered
  // `superseded`.
  virtual void begin(int members, Answers& answers) = 0;
  // Called by Shard's functions of the same names, once the shard has admitted the request.
  virtual void push(uint64_t session, const PushHeader& header, const Buffers& buffers,
                    Answers& answers) = 0;
  virtual void pull(uint64_t session, const PushHeader& header, Answers& answers) = 0;
  virtual void detach(uint64_t session, Answers& answers) = 0;
  // Called when the last update is settled.
  virtual void settle(Answers& answers) = 0;

  // Answers that the request belongs to another generation than the shard's.
  void supersede(uint64_t session, uint64_t sequence, Answers& answers) const;

 protected:
  // Copies gradients, which may be in any memory, to the shard's own floats.
  void copy(compute::ConstPlacedFloats gradients, compute::Floats& to) const {
    if (to.size() != gradients.size()) to = update_.floats(gradients.size());
    update_.keep(gradients, to);
  }
  // Returns gradients where the host can read them: in place, or in `copied`.
  std::span<const float> readable(compute::ConstPlacedFloats gradients,
                                  compute::Floats& copied) const {
    if (gradients.is_on_host()) return gradients.host();
    copy(gradients, copied);
    return copied;
  }
  // Counts a repeated push. `same`: its content is the same, as far as is known.
  void count_repeated(bool same) { ++(same ? counts.duplicates : counts.conflicting); }
  // Whether the sums are the same to the bit; a NaN equals itself.
  static bool same(const compute::LossSums& a, const compute::LossSums& b) {
    const auto same_bits = [](double one, double other) {
      return std::bit_cast<uint64_t>(one) == std::bit_cast<uint64_t>(other);
    };
    return same_bits(a.loss, b.loss) && same_bits(a.weight, b.weight) && a.rows == b.rows &&
           std::ranges::equal(a.terms, b.terms, same_bits);
  }
  // Returns an answer with the current parameters.
  Answer make_answer(uint64_t session, uint64_t sequence, const compute::LossSums& sums) const;

  const Shard& shard;
  Shard::Counts& counts;
  Tickets& tickets;
  const decltype(Access::apply) apply;

 private:
  ShardUpdate& update_;
};

std::unique_ptr<ShardPolicy> make_sync(ShardPolicy::Access access);
std::unique_ptr<ShardPolicy> make_async(ShardPolicy::Access access);
std::unique_ptr<ShardPolicy> make_bounded_staleness(ShardPolicy::Access access);

}  // namespace muster::ps
