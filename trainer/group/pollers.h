#pragma once

#include <memory>
#include <vector>

namespace muster::group {

// Of the threads in which gRPC waits for the network and calls back, leaves `most` at work for as
// long as it lives. gRPC has one for every two CPUs of the machine, and two at least; with each
// message one hands the waiting over to another, which where we have fewer CPUs than that costs
// more than the message. The others are held in callbacks that do not return. So a callback must
// never wait for another one, as is the rule anyway. One object a process; whatever uses gRPC
// comes after it and goes before it.
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
