#include "trainer/ps/messages.h"

namespace muster::ps {

compute::LossSums from_message(const EpochSumsMessage& message) {
  compute::LossSums sums;
  sums.rows = message.rows();
  sums.loss = message.loss();
  sums.correct = message.correct();
  return sums;
}

void to_message(const compute::LossSums& sums, EpochSumsMessage& message) {
  message.set_rows(sums.rows);
  message.set_loss(sums.loss);
  message.set_correct(sums.correct);
}

checkpoint::EpochSums from_messages(const EpochSumsMessages& messages) {
  checkpoint::EpochSums sums;
  for (const EpochSumsMessage& message : messages) sums.add(message.epoch(), from_message(message));
  return sums;
}

void to_messages(const checkpoint::EpochSums& sums, EpochSumsMessages& messages) {
  messages.Clear();
  for (const auto& epoch : sums.known()) {
    EpochSumsMessage& message = *messages.Add();
    message.set_epoch(epoch.number);
    to_message(epoch.sums, message);
  }
}

}  // namespace muster::ps
