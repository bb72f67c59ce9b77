#pragma once

#include <functional>

#include "trainer/group/storage_patience.h"

namespace muster::loop {

// For code that reads shared storage again and again: if it cannot be read for a while, that is
// logged once and does not end the process.
class PatientReader {
 public:
  // Returns false if `look` threw Unavailable and is to be tried again. A WriteError is thrown on
  // once the patience with it is over: a process elsewhere may be able to write.
  bool attempt(const std::function<void()>& look);

 private:
  bool told_ = false;
  group::StoragePatience patience_;
};

}  // namespace muster::loop
