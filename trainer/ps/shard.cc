#include "trainer/ps/shard.h"

#include <algorithm>
#include <utility>

namespace muster::ps {

using compute::LossSums;

Shard::Shard(Shape shape, const compute::Optimizer& optimizer, const compute::Schedule& schedule,
             int threads)
    : shape_(shape), update_(optimizer, threads), schedule_(schedule) {}

void Shard::load(Content content) {
  parameters_ = std::move(content.parameters);
  slots_ = std::move(content.slots);
  step_ = oldest_step_ = content.step;
  optimizer_t_ = content.optimizer_t;
  committed_ = {};
  sums_ = sums_before_ = content.sums;
  slot_views_.assign(slots_.begin(), slots_.end());
}

void Shard::begin(uint64_t generation, int members, Tickets tickets, Answers& answers) {
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
  generation_ = generation;
  tickets_ = std::move(tickets);
  waiting_.clear();
  sequences_.clear();
  pending_.resize(members);
  forget_pending();
  unseen_.assign(members, {});
}

bool Shard::admissible(uint64_t session, const PushHeader& header, Answers& answers) {
  Answer answer;
  answer.session = session;
  answer.header.sequence = header.sequence;
  answer.header.generation = generation_;
  if (generation_ == 0 || header.generation != generation_) {
    ++counts_.superseded;
    answer.header.status = Status::superseded;
  } else if (header.rank >= pending_.size()) {
    answer.header.status = Status::rejected;
    answer.header.message = "expected a rank below " + std::to_string(pending_.size()) +
                            ", found " + std::to_string(header.rank);
  } else {
    return true;
  }
  answers.push_back(std::move(answer));
  return false;
}

Shard::Answer Shard::make_answer(uint64_t session, uint64_t sequence, const LossSums& sums) const {
  Answer answer;
  answer.session = session;
  answer.header.generation = generation_;
  answer.header.step = step_;
  answer.header.sequence = sequence;
  answer.header.sums = sums;
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
  if (header.step != step_) {
    Answer answer = make_answer(session, header.sequence, committed_);
    if (header.step > step_) {  // computed on parameters that we do not have
      answer.header.status = Status::superseded;
      answer.values = Answer::Values::none;
      ++counts_.superseded;
    } else if (header.step + 1 == step_) {
      ++counts_.duplicates;
    } else {
      ++counts_.stale;
    }
    answers.push_back(std::move(answer));
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
  if (std::all_of(pending_.begin(), pending_.end(), [](const Pending& p) { return p.present; }))
    commit(answers);
}

// Sums in rank order, applies into the buffer of the step before the previous one, and answers
// everybody.
void Shard::commit(Answers& answers) {
  committed_ = {};
  gradient_views_.clear();
  copy_views_.clear();
  for (const Pending& pending : pending_) {
    committed_ += pending.sums;
    gradient_views_.push_back(pending.gradients);
    for (const Waiter& waiter : pending.waiters)
      if (!waiter.parameters.empty()) copy_views_.push_back(waiter.parameters);
  }
  previous_.resize(parameters_.size());
  std::swap(previous_, parameters_);
  oldest_step_ = step_;
  const bool applied = apply({previous_, parameters_, gradient_views_, slot_views_, copy_views_},
                             committed_.rows, step_);
  if (!applied) parameters_ = previous_;
  sums_before_ = sums_;
  sums_.add(tickets_.epoch_of(pending_[0].ticket), committed_);
  for (const Pending& pending : pending_)
    for (const Waiter& waiter : pending.waiters) {
      answers.push_back(make_answer(waiter.session, waiter.sequence, committed_));
      if (applied && !waiter.parameters.empty()) answers.back().values = Answer::Values::delivered;
    }
  forget_pending();
}

void Shard::forget_pending() {
  for (Pending& pending : pending_) {
    pending.present = false;
    pending.gradients = {};
    pending.waiters.clear();
  }
}

bool Shard::apply(const BlockUpdate::Buffers& buffers, int64_t rows, uint64_t schedule_step) {
  ++step_;
  ++counts_.commits;
  if (rows <= 0) return false;
  compute::UpdateArguments update;
  update.learning_rate = static_cast<float>(schedule_.at(schedule_step));
  update.t = ++optimizer_t_;
  update.inverse_rows = 1.0f / static_cast<float>(rows);
  update_.run(shape_.range, update, buffers, shape_.policy == Policy::sync);
  return true;
}

// async: each request of a session counts once; a pull too, since it takes a ticket.
bool Shard::repeated(uint64_t session, const PushHeader& header) {
  uint64_t& last = sequences_[session];
  if (header.sequence > last) {
    last = header.sequence;
    return false;
  }
  ++counts_.duplicates;
  return true;
}

void Shard::push_async(uint64_t session, const PushHeader& header, const Buffers& buffers,
                       Answers& answers) {
  if (repeated(session, header)) return;
  gradient_views_.assign(1, buffers.gradients);
  copy_views_.clear();
  if (!buffers.parameters.empty()) copy_views_.push_back(buffers.parameters);
  const bool applied = apply({parameters_, parameters_, gradient_views_, slot_views_, copy_views_},
                             header.sums.rows, shape_.shard == 0 ? step_ : header.step);
  for (LossSums& sums : unseen_) sums += header.sums;
  sums_.add(tickets_.epoch_of(header.ticket), header.sums);
  tickets_.done(header.ticket);
  answer_async(
      session, header.sequence, header.rank,
      applied && !copy_views_.empty() ? Answer::Values::delivered : Answer::Values::current,
      answers);
  serve_waiting(answers);
}

void Shard::answer_async(uint64_t session, uint64_t sequence, uint32_t rank, Answer::Values values,
                         Answers& answers) {
  Answer answer = make_answer(session, sequence, unseen_[rank]);
  answer.values = values;
  if (shape_.shard == 0) {
    answer.header.ticket = tickets_.take(session);
    answer.header.finished = !answer.header.ticket && tickets_.finished();
    if (!answer.header.ticket && !answer.header.finished) {
      waiting_.push_back({session, sequence, rank});
      return;
    }
  }
  unseen_[rank] = {};
  answers.push_back(std::move(answer));
}

// Work has come back, or all of it is done: who waits for either is answered.
void Shard::serve_waiting(Answers& answers) {
  if (waiting_.empty()) return;
  const std::vector<Waiting> waiting = std::exchange(waiting_, {});
  for (const Waiting& one : waiting)
    answer_async(one.session, one.sequence, one.rank, Answer::Values::current, answers);
}

void Shard::pull(uint64_t session, const PushHeader& header, Answers& answers) {
  if (!admissible(session, header, answers)) return;
  if (shape_.policy == Policy::async) {
    if (!repeated(session, header))
      answer_async(session, header.sequence, header.rank, Answer::Values::current, answers);
    return;
  }
  Answer answer = make_answer(session, header.sequence, committed_);
  if (!header.newest && header.step != step_) {
    if (header.step + 1 == step_ && header.step >= oldest_step_ && !previous_.empty()) {
      answer.values = Answer::Values::previous;
      answer.header.step = header.step;
    } else {
      answer.values = Answer::Values::none;
      answer.header.status = Status::superseded;
    }
  }
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
  sequences_.erase(session);
  tickets_.release(session);
  serve_waiting(answers);
}

}  // namespace muster::ps
