#include "trainer/ps/messages.h"

namespace muster::ps {

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

}  // namespace muster::ps
