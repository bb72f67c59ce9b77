#pragma once

#include <functional>

namespace muster::loop {

// For who looks at shared storage again and again: that it cannot be read for a while is said once,
// and no reason to end.
class PatientReader {
 public:
  // False where `look` threw Unavailable: to be tried again. WriteError passes, for another place
  // may be able to write.
  bool attempt(const std::function<void()>& look);

 private:
  bool told_ = false;
};

}  // namespace muster::loop
