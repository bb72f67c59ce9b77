#include <algorithm>

#include "trainer/ps/shard.h"

namespace muster::ps {

namespace {

bool all_plausible(const EpochSumsMessages& messages) {
  return std::ranges::all_of(
      messages, [](const EpochSumsMessage& message) { return get_sums(message).plausible(); });
}

}  // namespace

Shard::Counts& Shard::Counts::operator+=(const Counts& other) {
  commits += other.commits;
  duplicates += other.duplicates;
  stale += other.stale;
  superseded += other.superseded;
  left_out += other.left_out;
  pushes += other.pushes;
  staleness += other.staleness;
  most_staleness = std::max(most_staleness, other.most_staleness);
  held_back += other.held_back;
  return *this;
}

// With a twin: the sum is made first, so that it is under way while it is applied here.
void Shard::append(const ForwardUpdate& update) {
  sum_ = {};
  if (log_.mode() == TwinLog::Mode::off) return;
  TwinLog::Update& entry = log_.add(shape_.range.size());
  entry.header = update;
  const std::span<float> sum = entry.gradients.values();
  update_.sum(gradient_views_, sum, shape_.policy == Policy::sync);
  sum_ = sum;
  log_.added();
}

// One update, here or where it was decided on: of gradient_views_ or sum_, also to copy_views_.
// False where nothing was applied, for want of rows.
bool Shard::take_step(const ForwardUpdate& update) {
  const compute::LossSums sums = get_sums(update.sums());
  const bool sync = shape_.policy == Policy::sync;
  if (sync) {
    committed_ = sums;
    oldest_step_ = step_;
    sums_before_ = sums_;
  }
  const std::span<const float> before = versions_.current();
  const bool applied = apply(before, sync ? versions_.advance() : versions_.change(), sums.rows,
                             update.schedule_step());
  sums_.add(tickets_.epoch_of(update.ticket()), sums);
  return applied;
}

Shard::State Shard::state() const {
  State state;
  ForwardState& header = state.header;
  header.set_step(step_);
  header.set_optimizer_t(optimizer_t_);
  header.set_has_previous(!previous().empty() && oldest_step_ < step_);
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
  if (!all_plausible(header.sums()) || !all_plausible(header.sums_before()) ||
      !get_sums(header.committed()).plausible())
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
  if (header.has_previous() && step_ > 0) {
    std::ranges::copy(newest, versions_.advance().begin());
    oldest_step_ = step_ - 1;
  }
  sums_before_ = from_messages(header.sums_before());
  committed_ = get_sums(header.committed());
  return true;
}

bool Shard::follow(const ForwardUpdate& update, std::span<const float> gradients) {
  if (update.step() < step_) return true;
  if (update.step() > step_ || gradients.size() != parameters().size()) return false;
  if (!get_sums(update.sums()).plausible() || !tickets_.may_follow(update.next_ticket()))
    return false;
  sum_ = gradients;
  copy_views_.clear();
  take_step(update);
  tickets_.follow(update.next_ticket());
  for (const uint64_t ticket : update.done()) tickets_.done(ticket);
  return true;
}

}  // namespace muster::ps
