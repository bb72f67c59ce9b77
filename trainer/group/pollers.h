#pragma once

#include <memory>
#include <vector>

namespace muster::group {

// Limits gRPC's polling threads, which wait for the network and run callbacks, to `most` while this
// object lives. gRPC has one for every two CPUs of the machine, and at least two. With each message
// one thread hands the waiting over to another; on fewer CPUs than threads that costs more than the
// message. The other threads are held in callbacks that do not return. So a callback must never
// wait for another one, as is the rule anyway. One object for each process; it must be made before
// everything that uses gRPC and destroyed after it.
class Pollers {
 public:
  explicit Pollers(int most);
  ~Pollers();
  Pollers(const Pollers&) = delete;
  Pollers& operator=(const Pollers&) = delete;

 private:
  class Held;
  std::vector<std::unique_ptr<Held>> held_;
};

}  // namespace muster::group
