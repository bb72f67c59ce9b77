#include "trainer/ps/shard/shard.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "common/digest.h"
#include "common/error.h"
#include "trainer/ps/shard/block_update.h"
#include "trainer/ps/shard/copy.h"
#include "trainer/ps/shard/shard_policy.h"

namespace muster::ps {

namespace {

std::unique_ptr<ShardPolicy> make(ShardPolicy::Access access) {
  const SyncPolicy policy = access.shard.shape().policy;
  switch (policy) {
    case SyncPolicy::sync:
      return make_sync(std::move(access));
    case SyncPolicy::async:
      return make_async(std::move(access));
    case SyncPolicy::bounded_staleness:
      return make_bounded_staleness(std::move(access));
  }
  throw Invalid("policy: expected a policy that shards have, found number " +
                std::to_string(static_cast<int>(policy)));
}

}  // namespace

void Shard::Counts::add_staleness(uint64_t staleness_of_push) {
  ++pushes;
  staleness += staleness_of_push;
  const auto bucket = static_cast<size_t>(std::bit_width(staleness_of_push));
  ++by_staleness[std::min(bucket, by_staleness.size() - 1)];
}

Shard::Counts& Shard::Counts::operator+=(const Counts& other) {
  commits += other.commits;
  duplicates += other.duplicates;
  conflicting += other.conflicting;
  stale += other.stale;
  superseded += other.superseded;
  left_out += other.left_out;
  pushes += other.pushes;
  staleness += other.staleness;
  for (size_t i = 0; i < by_staleness.size(); ++i) by_staleness[i] += other.by_staleness[i];
  held_back += other.held_back;
  differing += other.differing;
  return *this;
}

Shard::Shard(Shape shape, const compute::Optimizer& optimizer, const compute::Schedule& schedule,
             int threads)
    : Shard(shape, optimizer, schedule,
            std::make_unique<BlockUpdate>(optimizer, threads, shape.bfloat16)) {}

Shard::Shard(Shape shape, const compute::Optimizer& optimizer, const compute::Schedule& schedule,
             std::unique_ptr<ShardUpdate> update)
    : shape_(shape),
      update_(std::move(update)),
      schedule_(schedule),
      slot_count_(optimizer.slot_names().size()),
      policy_(make({*this, counts_, tickets_, *update_,
                    [this](const ForwardUpdate& update, auto gradients, auto copies) {
                      return apply(update, gradients, copies);
                    }})),
      lockstep_(policy_->lockstep()) {}

Shard::~Shard() = default;

void Shard::load(Content content) {
  const auto own = [&](compute::Floats& values) {
    if (!update_->memory()) return std::move(values);
    compute::Floats moved = update_->floats(values.size());
    std::ranges::copy(std::exchange(values, {}), moved.begin());
    return moved;
  };
  const auto memory = update_->memory();
  versions_.load(own(content.parameters), lockstep_ ? 2 : 1, memory);
  slots_.clear();
  for (auto& slot : content.slots) slots_.emplace_back().load(own(slot), 1, memory);
  step_ = content.step;
  optimizer_t_ = content.optimizer_t;
  committed_ = {};
  sums_ = sums_before_ = content.sums;
  policy_->forget();
}

void Shard::begin(uint64_t generation, int members, Tickets tickets, Answers& answers,
                  bool serving) {
  generation_ = generation;
  members_ = static_cast<size_t>(members);
  serving_ = serving;
  used_ = false;
  tickets_ = std::move(tickets);
  policy_->begin(members, answers);
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

uint32_t Shard::Image::digest() const {
  uint32_t digest = crc32c(std::as_bytes(std::span(*parameters)));
  for (const Versions::Loan& slot : slots) digest = crc32c(std::as_bytes(std::span(*slot)), digest);
  return digest;
}

// Returns whether the request comes from a member of this generation; if not, answers it.
bool Shard::admits(uint64_t session, const PushHeader& header, Answers& answers) {
  const bool ours = generation_ > 0 && header.generation == generation_ && serving_;
  if (ours && header.rank < members_) return used_ = true;
  policy_->supersede(session, header.sequence, answers);
  if (ours) {
    answers.back().header.status = Status::rejected;
    answers.back().header.message = "expected a rank below " + std::to_string(members_) +
                                    ", found " + std::to_string(header.rank);
  } else {
    ++counts_.superseded;
  }
  return false;
}

void Shard::push(uint64_t session, const PushHeader& header, const Buffers& buffers,
                 Answers& answers) {
  if (admits(session, header, answers)) policy_->push(session, header, buffers, answers);
}

void Shard::pull(uint64_t session, const PushHeader& header, Answers& answers) {
  if (admits(session, header, answers)) policy_->pull(session, header, answers);
}

void Shard::detach(uint64_t session, Answers& answers) {
  policy_->detach(session, answers);
}

void Shard::settle(Answers& answers) {
  if (settled()) policy_->settle(answers);
}

void ShardPolicy::supersede(uint64_t session, uint64_t sequence, Answers& answers) const {
  Answer& answer = answers.emplace_back();
  answer.session = session;
  answer.header.status = Status::superseded;
  answer.header.sequence = sequence;
  answer.header.generation = shard.generation();
}

ShardPolicy::Answer ShardPolicy::make_answer(uint64_t session, uint64_t sequence,
                                             const compute::LossSums& sums) const {
  Answer answer;
  answer.session = session;
  answer.header.generation = shard.generation();
  answer.header.step = shard.step();
  answer.header.sequence = sequence;
  answer.header.sums = sums;
  answer.values = Answer::Values::current;
  return answer;
}

// With a standby the sum is computed first, so that it is sent while the update is applied here.
bool Shard::apply(const ForwardUpdate& update, ShardUpdate::Gradients gradients,
                  ShardUpdate::Copies copies) {
  ShardUpdate::Buffers buffers;
  buffers.gradients = gradients;
  buffers.copies = copies;
  if (log_.mode() != StandbyLog::Mode::off) {
    StandbyLog::Update& entry = log_.add(shape_.range.size());
    entry.header = update;
    update_->sum(gradients, entry.gradients.values(), lockstep_);
    buffers.sum = entry.gradients.values();
    log_.added();
  }
  return take_step(update, buffers);
}

// Makes one step, on the serving or the second copy. The shard's own buffers are added to
// `buffers`.
bool Shard::take_step(const ForwardUpdate& update, ShardUpdate::Buffers buffers) {
  const compute::LossSums sums = get_sums(update.sums());
  if (lockstep_) {
    committed_ = sums;
    sums_before_ = sums_;
  }
  buffers.from = versions_.current();
  buffers.to = lockstep_ ? versions_.advance() : versions_.change();
  sums_.add(tickets_.epoch_of(update.ticket()), sums);
  ++step_;
  counts_.commits += serving_;  // a second copy's steps are counted by the serving copy
  if (sums.rows <= 0) {
    copy_unless_same(buffers.from, buffers.to);
    return false;
  }
  compute::UpdateArguments arguments;
  arguments.learning_rate = static_cast<float>(schedule_.at(update.schedule_step()));
  arguments.t = ++optimizer_t_;
  arguments.divide_by(sums);
  slots_before_.clear();
  slot_views_.clear();
  for (Versions& slot : slots_) {
    slots_before_.push_back(slot.current());
    slot_views_.push_back(slot.change());
  }
  buffers.slots_from = slots_before_;
  buffers.slots = slot_views_;
  update_->run(shape_.range, arguments, buffers, lockstep_);
  return true;
}

Shard::State Shard::state() const {
  State state;
  ForwardState& header = state.header;
  header.set_step(step_);
  header.set_optimizer_t(optimizer_t_);
  header.set_has_previous(!versions_.previous().empty());
  to_messages(sums_, *header.mutable_sums());
  to_messages(sums_before_, *header.mutable_sums_before());
  set_sums(*header.mutable_committed(), committed_);
  header.set_next_ticket(tickets_.next());
  for (const uint64_t ticket : tickets_.outstanding()) header.add_outstanding(ticket);
  state.values.push_back(versions_.lend_current());
  if (header.has_previous()) state.values.push_back(versions_.lend_previous());
  for (const Versions& slot : slots_) state.values.push_back(slot.lend_current());
  return state;
}

bool Shard::adopt(const ForwardState& header, std::span<const float> values) {
  const size_t size = shape_.range.size();
  if (values.size() != size * (1 + header.has_previous() + slot_count_)) return false;
  if (!group::is_possible(header.sums()) || !group::is_possible(header.sums_before()) ||
      !group::is_possible(header.base()) || !get_sums(header.committed()).plausible() ||
      std::max(header.step(), header.optimizer_t()) > group::kMostCounted)
    return false;
  const auto take = [&] {
    const auto first = values.first(size);
    values = values.subspan(size);
    return first;
  };
  const auto floats = [](std::span<const float> from) {
    return compute::Floats(from.begin(), from.end());
  };
  const std::span<const float> newest = take();
  const std::span<const float> before = header.has_previous() ? take() : newest;
  Content content;
  content.parameters = floats(before);
  for (size_t slot = 0; slot < slot_count_; ++slot) content.slots.push_back(floats(take()));
  content.step = header.step();
  content.optimizer_t = header.optimizer_t();
  content.sums = from_messages(header.sums());
  load(std::move(content));
  if (header.has_previous() && step_ > 0) std::ranges::copy(newest, versions_.advance().begin());
  sums_before_ = from_messages(header.sums_before());
  committed_ = get_sums(header.committed());
  return true;
}

bool Shard::follow(const ForwardUpdate& update, std::span<const float> gradients) {
  if (update.step() < step_) return true;
  if (update.step() > step_ || gradients.size() != shape_.range.size()) return false;
  if (!get_sums(update.sums()).plausible() || !tickets_.may_follow(update.next_ticket()))
    return false;
  ShardUpdate::Buffers buffers;
  buffers.sum = gradients;
  take_step(update, buffers);
  tickets_.follow(update.next_ticket());
  for (const uint64_t ticket : update.done()) tickets_.done(ticket);
  return true;
}

}  // namespace muster::ps
