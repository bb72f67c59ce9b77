#pragma once

#include <memory>
#include <vector>

namespace muster::group {

// Limits gRPC's polling threads, which wait for the network and run callbacks, to `most` while this
// object lives. By default gRPC has one such thread for every two CPUs of the machine, and at least
// two. At each message one thread hands the waiting over to another; with fewer CPUs than threads
// this costs more than the message itself. This object keeps the other threads in callbacks that do
// not return. So a callback must never wait for another callback, which is the rule anyway. Make
// one object in each process, before anything that uses gRPC; destroy it last.
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
