#pragma once

#include <functional>

#include "trainer/group/storage_patience.h"

namespace muster::loop {

// For who looks at shared storage again and again: that it cannot be read for a while is said once,
// and no reason to end.
class PatientReader {
 public:
  // False where `look` threw Unavailable: to be tried again. Of WriteErrors that is said when the
  // patience with them is over: another place may be able to write.
  bool attempt(const std::function<void()>& look);

 private:
  bool told_ = false;
  group::StoragePatience patience_;
};

}  // namespace muster::loop
