#include "trainer/group/position.h"

#include <algorithm>

namespace muster::group {

checkpoint::EpochSums from_messages(const EpochSumsMessages& messages) {
  checkpoint::EpochSums sums;
  for (const EpochSumsMessage& message : messages) sums.add(message.epoch(), get_sums(message));
  return sums;
}

void to_messages(const checkpoint::EpochSums& sums, EpochSumsMessages& messages) {
  messages.Clear();
  for (const auto& epoch : sums.known()) {
    EpochSumsMessage& message = *messages.Add();
    message.set_epoch(epoch.number);
    set_sums(message, epoch.sums);
  }
}

namespace {

std::optional<checkpoint::Best> best_of(bool there, const BestMessage& message) {
  if (!there) return std::nullopt;
  return checkpoint::Best{message.value(), message.step(), message.epoch()};
}

void fill(const checkpoint::Best& best, BestMessage& message) {
  message.set_value(best.value);
  message.set_step(best.step);
  message.set_epoch(best.epoch);
}

}  // namespace

checkpoint::Evaluations from_message(const EvaluationsMessage& message) {
  return {message.epoch(),
          best_of(message.has_best(), message.best()),
          message.without_improvement(),
          best_of(message.has_kept(), message.kept()),
          best_of(message.has_reached(), message.reached()),
          message.step()};
}

EvaluationsMessage to_message(const checkpoint::Evaluations& evaluations) {
  EvaluationsMessage message;
  message.set_epoch(evaluations.epoch);
  message.set_step(evaluations.step);
  if (evaluations.best) fill(*evaluations.best, *message.mutable_best());
  message.set_without_improvement(evaluations.without_improvement);
  if (evaluations.kept) fill(*evaluations.kept, *message.mutable_kept());
  if (evaluations.reached) fill(*evaluations.reached, *message.mutable_reached());
  return message;
}

bool is_possible(const EpochSumsMessages& messages) {
  return std::ranges::all_of(
      messages, [](const EpochSumsMessage& message) { return get_sums(message).plausible(); });
}

bool is_possible(const PositionMessage& message) {
  return std::max({message.step(), message.epoch(), message.next_batch(), message.optimizer_t()}) <=
             kMostCounted &&
         is_possible(message.sums());
}

checkpoint::Position from_message(const PositionMessage& message) {
  checkpoint::Position position;
  position.step = message.step();
  position.epoch = message.epoch();
  position.next_batch = message.next_batch();
  position.optimizer_t = message.optimizer_t();
  position.outstanding.assign(message.outstanding().begin(), message.outstanding().end());
  position.sums = from_messages(message.sums());
  position.evaluations = from_message(message.evaluations());
  return position;
}

PositionMessage to_message(const checkpoint::Position& position) {
  PositionMessage message;
  message.set_step(position.step);
  message.set_epoch(position.epoch);
  message.set_next_batch(position.next_batch);
  message.set_optimizer_t(position.optimizer_t);
  message.mutable_outstanding()->Add(position.outstanding.begin(), position.outstanding.end());
  to_messages(position.sums, *message.mutable_sums());
  if (position.evaluations != checkpoint::Evaluations{})
    *message.mutable_evaluations() = to_message(position.evaluations);
  return message;
}

}  // namespace muster::group
