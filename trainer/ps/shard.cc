#include "trainer/ps/shard.h"

#include <algorithm>
#include <utility>

#include "trainer/ps/copy.h"

namespace muster::ps {

using compute::LossSums;

Shard::Shard(Shape shape, const compute::Optimizer& optimizer, const compute::Schedule& schedule,
             int threads)
    : shape_(shape),
      update_(optimizer, threads, shape.bfloat16),
      schedule_(schedule),
      slot_count_(optimizer.slot_names().size()) {}

void Shard::load(Content content) {
  versions_.load(std::move(content.parameters), shape_.policy == Policy::sync ? 2 : 1);
  slots_.clear();
  for (auto& slot : content.slots) slots_.emplace_back().load(std::move(slot), 1);
  step_ = oldest_step_ = content.step;
  optimizer_t_ = content.optimizer_t;
  committed_ = {};
  sums_ = sums_before_ = content.sums;
  contributed_.reset();
  forget_pending();
}

std::vector<std::span<const float>> Shard::slots() const {
  std::vector<std::span<const float>> slots;
  for (const Versions& slot : slots_) slots.push_back(slot.current());
  return slots;
}

Shard::Image Shard::image() const {
  Image image{versions_.lend_current(), {}};
  for (const Versions& slot : slots_) image.slots.push_back(slot.lend_current());
  return image;
}

void Shard::begin(uint64_t generation, int members, Tickets tickets, Answers& answers,
                  bool serving) {
  const auto supersede = [&](uint64_t session, uint64_t sequence) {
    Answer answer;
    answer.session = session;
    answer.header.status = Status::superseded;
    answer.header.sequence = sequence;
    answer.header.generation = generation;
    answers.push_back(answer);
  };
  for (const Pending& pending : pending_)
    for (const Waiter& waiter : pending.waiters) supersede(waiter.session, waiter.sequence);
  for (const Waiting& waiting : waiting_) supersede(waiting.session, waiting.sequence);
  for (const Answer& held : held_) supersede(held.session, held.header.sequence);
  generation_ = generation;
  serving_ = serving;
  used_ = false;
  tickets_ = std::move(tickets);
  done_.clear();
  held_.clear();
  waiting_.clear();
  sessions_.clear();
  pending_.resize(members);
  // What is held goes with the step that it was computed for, whatever the generation.
  if (follows())
    for (Pending& pending : pending_) pending.waiters.clear();
  else
    forget_pending();
  unseen_.assign(members, {});
}

bool Shard::admissible(uint64_t session, const PushHeader& header, Answers& answers) {
  Answer answer;
  answer.session = session;
  answer.header.sequence = header.sequence;
  answer.header.generation = generation_;
  if (generation_ == 0 || header.generation != generation_ || !serving_) {
    ++counts_.superseded;
    answer.header.status = Status::superseded;
  } else if (header.rank >= pending_.size()) {
    answer.header.status = Status::rejected;
    answer.header.message = "expected a rank below " + std::to_string(pending_.size()) +
                            ", found " + std::to_string(header.rank);
  } else {
    used_ = true;
    return true;
  }
  answers.push_back(std::move(answer));
  return false;
}

// One that shows the newest update.
void Shard::answer_settled(Answer answer, Answers& answers) {
  (settled() ? answers : held_).push_back(std::move(answer));
}

void Shard::settle(Answers& answers) {
  if (!settled()) return;
  const size_t first = answers.size();
  for (Answer& answer : std::exchange(held_, {})) answers.push_back(std::move(answer));
  const size_t end = answers.size();
  if (shape_.policy != Policy::sync) return serve_waiting(answers);
  const uint64_t before = step_;
  if (!pending_.empty()) commit_if_due(answers);
  // What was current for these is the step before now.
  for (size_t i = first; i < end && step_ != before; ++i)
    if (answers[i].values == Answer::Values::current) answers[i].values = Answer::Values::previous;
}

Shard::Answer Shard::make_answer(uint64_t session, uint64_t sequence, const LossSums& sums) const {
  Answer answer;
  answer.session = session;
  answer.header.generation = generation_;
  answer.header.step = step_;
  answer.header.sequence = sequence;
  answer.header.sums = sums;
  answer.header.contributors = contributed_;
  answer.values = Answer::Values::current;
  return answer;
}

void Shard::push(uint64_t session, const PushHeader& header, const Buffers& buffers,
                 Answers& answers) {
  if (!admissible(session, header, answers)) return;
  if (shape_.policy == Policy::sync)
    push_sync(session, header, buffers, answers);
  else
    push_async(session, header, buffers, answers);
}

void Shard::push_sync(uint64_t session, const PushHeader& header, const Buffers& buffers,
                      Answers& answers) {
  if (header.step != step_) return answer_late(session, header, answers);
  if (follows()) {
    answers.push_back(make_answer(session, header.sequence, {}));
    answers.back().values = Answer::Values::none;
    hold(header, buffers.gradients);
    commit_if_due(answers);
    return;
  }
  Pending& pending = pending_[header.rank];
  std::erase_if(pending.waiters, [&](const Waiter& waiter) { return waiter.session == session; });
  pending.waiters.push_back({session, header.sequence, buffers.parameters});
  if (pending.present) {  // sent again, perhaps by its successor: the same numbers
    ++counts_.duplicates;
    return;
  }
  pending.present = true;
  pending.sums = header.sums;
  pending.ticket = header.ticket;
  pending.owner = session;
  pending.gradients = buffers.gradients;
  commit_if_due(answers);
}

void Shard::hold(const PushHeader& header, std::span<const float> gradients) {
  Pending& pending = pending_[header.rank];
  if (pending.present) {
    ++counts_.duplicates;
    return;
  }
  pending.present = true;
  pending.sums = header.sums;
  pending.ticket = header.ticket;
  pending.kept.assign(gradients.begin(), gradients.end());
  pending.gradients = pending.kept;
}

// A push of another step than ours.
void Shard::answer_late(uint64_t session, const PushHeader& header, Answers& answers) {
  Answer answer = make_answer(session, header.sequence, committed_);
  if (header.step > step_) {  // computed on parameters that we do not have
    answer.header.status = Status::superseded;
    answer.values = Answer::Values::none;
    ++counts_.superseded;
  } else if (header.step + 1 == step_ &&
             (shape_.backup_workers == 0 || contributed_[header.rank])) {
    ++counts_.duplicates;
  } else {
    ++counts_.stale;
  }
  if (follows()) answer.values = Answer::Values::none;
  answer_settled(std::move(answer), answers);
}

// Whom shard 0 is said to have made the step of. False, and answered, where that cannot be.
bool Shard::choose(uint64_t session, const PushHeader& header, Answers& answers) {
  const size_t members = pending_.size();
  const size_t backups = std::min<size_t>(shape_.backup_workers, members - 1);
  const Contributors& found = header.contributors;
  const bool possible = found[0] && found.count() + backups >= members && (found >> members).none();
  if (possible && (chosen_.none() || chosen_ == found)) {
    chosen_ = found;
    return true;
  }
  Answer answer = make_answer(session, header.sequence, {});
  answer.values = Answer::Values::none;
  answer.header.status = Status::rejected;
  answer.header.message = possible
                              ? "expected the contributors to step " + std::to_string(step_) +
                                    " that were named before, found others"
                              : "expected " + std::to_string(members - backups) + " to " +
                                    std::to_string(members) + " contributors with rank 0, found " +
                                    std::to_string(found.count()) + (found[0] ? "" : " without it");
  answers.push_back(std::move(answer));
  return false;
}

bool Shard::complete() const {
  if (follows()) {
    for (size_t rank = 0; rank < pending_.size(); ++rank)
      if (chosen_[rank] && !pending_[rank].present) return false;
    return chosen_.any();
  }
  const auto present = static_cast<size_t>(std::count_if(
      pending_.begin(), pending_.end(), [](const Pending& pending) { return pending.present; }));
  if (shape_.backup_workers == 0) return present == pending_.size();
  if (!pending_[0].present) return false;
  return present + shape_.backup_workers >= pending_.size();
}

void Shard::commit_if_due(Answers& answers) {
  if (complete() && settled()) commit(answers);
}

// Sums over the ranks, applies into the buffer of the step before the previous one, and answers
// everybody.
void Shard::commit(Answers& answers) {
  ForwardUpdate update;
  LossSums sums;
  contributed_.reset();
  gradient_views_.clear();
  copy_views_.clear();
  for (size_t rank = 0; rank < pending_.size(); ++rank) {
    const Pending& pending = pending_[rank];
    if (!pending.present || (follows() && !chosen_[rank])) {
      ++counts_.left_out;
      continue;
    }
    if (shape_.backup_workers > 0) contributed_[rank] = true;
    sums += pending.sums;
    gradient_views_.push_back(pending.gradients);
    for (const Waiter& waiter : pending.waiters)
      if (!waiter.parameters.empty()) copy_views_.push_back(waiter.parameters);
  }
  update.set_step(step_);
  update.set_schedule_step(step_);
  update.set_ticket(pending_[0].ticket);
  set_sums(*update.mutable_sums(), sums);
  append(update);
  const bool applied = take_step(update);
  for (const Pending& pending : pending_)
    for (const Waiter& waiter : pending.waiters) {
      Answer answer = make_answer(waiter.session, waiter.sequence, committed_);
      if (applied && !waiter.parameters.empty()) answer.values = Answer::Values::delivered;
      answer_settled(std::move(answer), answers);
    }
  forget_pending();
  for (const Waiting& waiting : std::exchange(waiting_, {}))
    answer_settled(make_answer(waiting.session, waiting.sequence, committed_), answers);
}

void Shard::forget_pending() {
  for (Pending& pending : pending_) {
    pending.present = false;
    pending.gradients = {};
    pending.waiters.clear();
  }
  chosen_.reset();
}

bool Shard::apply(std::span<const float> from, std::span<float> to, int64_t rows,
                  uint64_t schedule_step) {
  ++step_;
  counts_.commits += serving_;  // a second copy takes steps that are counted where they are made
  if (rows <= 0) {
    copy_unless_same(from, to);
    return false;
  }
  compute::UpdateArguments update;
  update.learning_rate = static_cast<float>(schedule_.at(schedule_step));
  update.t = ++optimizer_t_;
  update.inverse_rows = update.inverse_weight = 1.0f / static_cast<float>(rows);
  slots_before_.clear();
  slot_views_.clear();
  for (Versions& slot : slots_) {
    slots_before_.push_back(slot.current());
    slot_views_.push_back(slot.change());
  }
  update_.run(shape_.range, update,
              {from, to, gradient_views_, sum_, slots_before_, slot_views_, copy_views_},
              shape_.policy == Policy::sync);
  return true;
}

void Shard::pull(uint64_t session, const PushHeader& header, Answers& answers) {
  if (!admissible(session, header, answers)) return;
  if (shape_.policy == Policy::sync) return pull_sync(session, header, answers);
  if (!attend(session, header)) return;
  answer_async({session, header.sequence, header.rank}, Answer::Values::current, answers);
  serve_waiting(answers);
}

void Shard::pull_sync(uint64_t session, const PushHeader& header, Answers& answers) {
  Answer answer = make_answer(session, header.sequence, committed_);
  if (!header.newest && header.step != step_) {
    if (header.step + 1 == step_ && header.step >= oldest_step_ && !previous().empty()) {
      answer.values = Answer::Values::previous;
      answer.header.step = header.step;
      answer.header.contributors.reset();
    } else if (follows() && header.step == step_ + 1) {
      if (header.contributors.any() && !choose(session, header, answers)) return;
      waiting_.push_back({session, header.sequence, header.rank});
      commit_if_due(answers);
      return;
    } else {
      answer.values = Answer::Values::none;
      answer.header.status = Status::superseded;
    }
  }
  if (answer.values == Answer::Values::current) return answer_settled(std::move(answer), answers);
  answers.push_back(std::move(answer));
}

void Shard::detach(uint64_t session, Answers& answers) {
  for (Pending& pending : pending_) {
    if (!pending.present) continue;
    std::erase_if(pending.waiters, [&](const Waiter& waiter) { return waiter.session == session; });
    if (pending.owner != session || pending.gradients.data() == pending.kept.data()) continue;
    pending.kept.assign(pending.gradients.begin(), pending.gradients.end());
    pending.gradients = pending.kept;
  }
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.session == session; });
  std::erase_if(held_, [&](const Answer& answer) { return answer.session == session; });
  if (shape_.policy == Policy::sync) return;
  sessions_.erase(session);
  tickets_.release(session);
  serve_waiting(answers);
}

}  // namespace muster::ps
