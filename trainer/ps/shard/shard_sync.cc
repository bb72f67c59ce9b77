#include <algorithm>
#include <optional>
#include <utility>

#include "trainer/host/arithmetic.h"
#include "trainer/ps/shard/shard_policy.h"

namespace muster::ps {

namespace {

using compute::LossSums;

// Once all pushes of one step have come, they are summed in a fixed tree over the ranks, divided by
// the number of all rows and applied. The parameters of the step before stay readable for members
// that have lost their reply, or that still need them because another shard has not committed yet.
//
// With backup workers shard 0 commits without the last pushes, but never without rank 0's, because
// rank 0 takes checkpoints at step boundaries. Shard 0's answers name the contributors to the step.
// The other shards get each push before shard 0: they answer it at once, without parameters, and
// hold it until a member that wants the parameters after the step names the contributors. So every
// shard makes a step from the same pushes, and a member need not live until its push is committed.
// A member that was left out gets the newest parameters, and its gradients are lost.
class Synchronous final : public ShardPolicy {
 public:
  using ShardPolicy::ShardPolicy;

  bool lockstep() const override { return true; }

  void forget() override {
    contributed_.reset();
    for (Pending& pending : pending_) pending.committed.reset();
    forget_pending();
  }

  void begin(int members, Answers& answers) override {
    for (Pending& pending : pending_)
      for (const Waiter& waiter : std::exchange(pending.waiters, {}))
        supersede(waiter.session, waiter.sequence, answers);
    for (const Waiter& waiter : std::exchange(waiting_, {}))
      supersede(waiter.session, waiter.sequence, answers);
    for (const Answer& held : std::exchange(held_, {}))
      supersede(held.session, held.header.sequence, answers);
    pending_.resize(static_cast<size_t>(members));
    // A held push belongs to its step, in any generation.
    if (!follows()) forget_pending();
  }

  void push(uint64_t session, const PushHeader& header, const Buffers& buffers,
            Answers& answers) override {
    if (header.step != shard.step()) return answer_late(session, header, answers);
    Pending& pending = pending_[header.rank];
    if (follows()) {
      answers.push_back(make_answer(session, header.sequence, {}));
      answers.back().values = Answer::Values::none;
    } else {
      leave(pending.waiters, session);
      pending.waiters.push_back({session, header.sequence, buffers.parameters});
    }
    if (pending.present) {  // sent again, perhaps by its successor, with the same numbers
      count_repeated(same(pending.sums, header.sums) && pending.ticket == header.ticket &&
                     same(pending.gradients, buffers.gradients));
    } else {
      pending.present = true;
      pending.sums = header.sums;
      pending.ticket = header.ticket;
      pending.owner = session;
      pending.gradients = buffers.gradients;
      if (follows()) keep(pending);
    }
    commit_if_due(answers);
  }

  void pull(uint64_t session, const PushHeader& header, Answers& answers) override {
    const uint64_t step = shard.step();
    Answer answer = make_answer(session, header.sequence, shard.committed());
    if (header.newest || header.step == step) return answer_settled(std::move(answer), answers);
    if (header.step + 1 == step && !shard.previous().empty()) {
      answer.values = Answer::Values::previous;
      answer.header.step = header.step;
      answer.header.contributors.reset();
    } else if (follows() && header.step == step + 1) {
      if (header.contributors.any() && !choose(session, header, answers)) return;
      waiting_.push_back({session, header.sequence, {}});
      return commit_if_due(answers);
    } else {
      answer.values = Answer::Values::none;
      answer.header.status = Status::superseded;
    }
    answers.push_back(std::move(answer));
  }

  void detach(uint64_t session, Answers&) override {
    for (Pending& pending : pending_) {
      if (!pending.present) continue;
      leave(pending.waiters, session);
      if (pending.owner == session && pending.gradients.address() != pending.kept.data())
        keep(pending);
    }
    leave(waiting_, session);
    std::erase_if(held_, [&](const Answer& answer) { return answer.session == session; });
  }

  void settle(Answers& answers) override {
    const size_t first = answers.size();
    for (Answer& answer : std::exchange(held_, {})) answers.push_back(std::move(answer));
    const size_t end = answers.size();
    const uint64_t before = shard.step();
    if (!pending_.empty()) commit_if_due(answers);
    // The parameters that were current for these answers are the previous ones now.
    for (size_t i = first; i < end && shard.step() != before; ++i)
      if (answers[i].values == Answer::Values::current)
        answers[i].values = Answer::Values::previous;
  }

 private:
  struct Waiter {
    uint64_t session = 0;
    uint64_t sequence = 0;
    compute::PlacedFloats parameters;  // the session's memory
  };
  struct Pending {
    bool present = false;
    std::vector<Waiter> waiters;  // all get answers, for example a slow process and its successor
    LossSums sums;
    std::optional<LossSums> committed;  // sums of its push in the last commit
    uint64_t ticket = 0;
    uint64_t owner = 0;  // the session that owns the memory of `gradients`
    compute::ConstPlacedFloats gradients;
    compute::Floats kept;  // gradients of a lost owner or of a held push
  };

  // Whether the gradients are the same to the bit, in the form in which they are summed. They are
  // compared only when a push is repeated, which is rare.
  bool same(compute::ConstPlacedFloats one, compute::ConstPlacedFloats other) const {
    compute::Floats copies[2];
    const std::span<const float> a = readable(one, copies[0]), b = readable(other, copies[1]);
    if (!shard.shape().bfloat16) return std::ranges::equal(as_bytes(a), as_bytes(b));
    const host::Arithmetic& arithmetic = host::arithmetic();
    const auto rounded = [&](std::span<const float> values) {
      std::vector<uint16_t> bits(values.size());
      arithmetic.to_bfloat16(static_cast<int64_t>(values.size()), values.data(), bits.data());
      return bits;
    };
    return rounded(a) == rounded(b);
  }
  using ShardPolicy::same;

  bool follows() const { return shard.shape().backup_workers > 0 && shard.shape().shard > 0; }

  static void leave(std::vector<Waiter>& waiters, uint64_t session) {
    std::erase_if(waiters, [&](const Waiter& waiter) { return waiter.session == session; });
  }

  void keep(Pending& pending) const {
    copy(pending.gradients, pending.kept);
    pending.gradients = pending.kept;
  }

  void forget_pending() {
    for (Pending& pending : pending_) {
      pending.present = false;
      pending.gradients = {};
      pending.waiters.clear();
    }
    chosen_.reset();
  }

  Answer make_answer(uint64_t session, uint64_t sequence, const LossSums& sums) const {
    Answer answer = ShardPolicy::make_answer(session, sequence, sums);
    answer.header.contributors = contributed_;
    return answer;
  }

  // Gives an answer that shows the last update: at once, or when the update is settled.
  void answer_settled(Answer answer, Answers& answers) {
    (shard.settled() ? answers : held_).push_back(std::move(answer));
  }

  // Answers a push of another step than ours.
  void answer_late(uint64_t session, const PushHeader& header, Answers& answers) {
    Answer answer = make_answer(session, header.sequence, shard.committed());
    if (header.step > shard.step()) {  // computed on parameters that this shard does not have
      answer.header.status = Status::superseded;
      answer.values = Answer::Values::none;
      ++counts.superseded;
    } else if (header.step + 1 == shard.step() &&
               (shard.shape().backup_workers == 0 || contributed_[header.rank])) {
      const std::optional<LossSums>& committed = pending_[header.rank].committed;
      count_repeated(!committed || same(*committed, header.sums));
    } else {
      ++counts.stale;
    }
    if (follows()) answer.values = Answer::Values::none;
    answer_settled(std::move(answer), answers);
  }

  // Takes the contributors of shard 0's step from the request. Returns false, and answers, if they
  // are impossible.
  bool choose(uint64_t session, const PushHeader& header, Answers& answers) {
    const size_t members = pending_.size();
    const size_t backups = std::min<size_t>(shard.shape().backup_workers, members - 1);
    const Contributors& found = header.contributors;
    const bool possible =
        found[0] && found.count() + backups >= members && (found >> members).none();
    if (possible && (chosen_.none() || chosen_ == found)) {
      chosen_ = found;
      return true;
    }
    Answer& answer = answers.emplace_back(make_answer(session, header.sequence, {}));
    answer.values = Answer::Values::none;
    answer.header.status = Status::rejected;
    answer.header.message =
        possible ? "expected the contributors to step " + std::to_string(shard.step()) +
                       " that were named before, found others"
                 : "expected " + std::to_string(members - backups) + " to " +
                       std::to_string(members) + " contributors with rank 0, found " +
                       std::to_string(found.count()) + (found[0] ? "" : " without it");
    return false;
  }

  bool complete() const {
    if (follows()) {
      for (size_t rank = 0; rank < pending_.size(); ++rank)
        if (chosen_[rank] && !pending_[rank].present) return false;
      return chosen_.any();
    }
    const auto present = static_cast<size_t>(std::ranges::count(pending_, true, &Pending::present));
    const uint32_t backups = shard.shape().backup_workers;
    return present + backups >= pending_.size() && (backups == 0 || pending_[0].present);
  }

  void commit_if_due(Answers& answers) {
    if (complete() && shard.settled()) commit(answers);
  }

  // Makes the update from all pushes that have come or were chosen, and answers all members.
  void commit(Answers& answers) {
    ForwardUpdate update;
    LossSums sums;
    contributed_.reset();
    gradients_.clear();
    copies_.clear();
    for (size_t rank = 0; rank < pending_.size(); ++rank) {
      Pending& pending = pending_[rank];
      pending.committed.reset();
      if (!pending.present || (follows() && !chosen_[rank])) {
        ++counts.left_out;
        continue;
      }
      pending.committed = pending.sums;
      if (shard.shape().backup_workers > 0) contributed_[rank] = true;
      sums += pending.sums;
      gradients_.push_back(pending.gradients);
      for (const Waiter& waiter : pending.waiters)
        if (!waiter.parameters.empty()) copies_.push_back(waiter.parameters);
    }
    update.set_step(shard.step());
    update.set_schedule_step(shard.step());
    update.set_ticket(pending_[0].ticket);
    set_sums(*update.mutable_sums(), sums);
    const bool applied = apply(update, gradients_, copies_);
    for (const Pending& pending : pending_)
      for (const Waiter& waiter : pending.waiters) {
        Answer answer = make_answer(waiter.session, waiter.sequence, shard.committed());
        if (applied && !waiter.parameters.empty()) answer.values = Answer::Values::delivered;
        answer_settled(std::move(answer), answers);
      }
    forget_pending();
    for (const Waiter& waiter : std::exchange(waiting_, {}))
      answer_settled(make_answer(waiter.session, waiter.sequence, shard.committed()), answers);
  }

  std::vector<Pending> pending_;  // by rank
  std::vector<Waiter> waiting_;   // waiting for a step that shard 0 has already committed
  Contributors chosen_;           // chosen by shard 0 for the step, if this shard follows shard 0
  Contributors contributed_;      // contributors to the last commit; empty without backup workers
  std::vector<compute::ConstPlacedFloats> gradients_;
  std::vector<compute::PlacedFloats> copies_;
  Answers held_;  // answers held until the last commit is settled
};

}  // namespace

std::unique_ptr<ShardPolicy> make_sync(ShardPolicy::Access access) {
  return std::make_unique<Synchronous>(std::move(access));
}

}  // namespace muster::ps
