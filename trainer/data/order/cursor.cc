#include "trainer/data/order/cursor.h"

namespace muster::data {

Cursor Cursor::next(uint64_t batches_per_epoch) const {
  Cursor later = *this;
  if (++later.taken < share.batches * share.pieces) return later;
  later.taken = 0;
  later.step += share.stride;
  if (later.step >= batches_per_epoch) {
    ++later.epoch;
    later.step = 0;
  }
  return later;
}

}  // namespace muster::data
