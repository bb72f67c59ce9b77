#pragma once

#include <functional>

#include "trainer/group/storage_patience.h"

namespace muster::loop {

// For code that reads shared storage repeatedly. If the storage cannot be read for a while, this is
// logged once and does not end the process.
class PatientReader {
 public:
  // Returns false if `look` threw Unavailable and should be tried again. Passes a WriteError on
  // after some time, because a process on another machine may be able to write.
  bool attempt(const std::function<void()>& look);

 private:
  bool told_ = false;
  group::StoragePatience patience_;
};

}  // namespace muster::loop
