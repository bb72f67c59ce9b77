#include "trainer/checkpoint/files/epoch_sums.h"

namespace muster::checkpoint {

void EpochSums::add(uint64_t epoch, const compute::LossSums& sums) {
  if (epoch > newest_.number) {
    if (newest_.sums.rows > 0) before_ = newest_;
    newest_ = {epoch, {}};
  }
  if (epoch == newest_.number) {
    newest_.sums += sums;
  } else if (epoch == before_.number) {
    before_.sums += sums;
  } else if (epoch > before_.number || before_.sums.rows == 0) {
    before_ = {epoch, sums};
  }
}

compute::LossSums EpochSums::of(uint64_t epoch) const {
  if (epoch == newest_.number) return newest_.sums;
  return epoch == before_.number ? before_.sums : compute::LossSums{};
}

compute::LossSums EpochSums::last_whole(uint64_t epoch) const {
  if (epoch > 0)
    if (const compute::LossSums last = of(epoch - 1); last.rows > 0) return last;
  return of(epoch);
}

std::vector<EpochSums::Epoch> EpochSums::known() const {
  std::vector<Epoch> epochs = {before_, newest_};
  std::erase_if(epochs, [](const Epoch& epoch) { return epoch.sums.rows == 0; });
  return epochs;
}

}  // namespace muster::checkpoint
