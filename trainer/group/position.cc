#include "trainer/group/position.h"

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

checkpoint::Position from_message(const PositionMessage& message) {
  checkpoint::Position position;
  position.step = message.step();
  position.epoch = message.epoch();
  position.next_batch = message.next_batch();
  position.optimizer_t = message.optimizer_t();
  position.outstanding.assign(message.outstanding().begin(), message.outstanding().end());
  position.sums = from_messages(message.sums());
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
  return message;
}

}  // namespace muster::group
