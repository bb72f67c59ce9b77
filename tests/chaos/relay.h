#pragma once

#include <atomic>
#include <thread>

namespace muster::chaos {

// An address that leads where it is told to, as the name of a service does: a port of 127.0.0.1
// whose new connections go to another port of it. Those that are open stay with whom they have.
class Relay {
 public:
  explicit Relay(int target);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return port_; }
  void lead_to(int target) { target_ = target; }

 private:
  void run(std::stop_token stop);

  std::atomic<int> target_;
  int listener_ = -1;
  int port_ = 0;
  std::jthread thread_;
};

}  // namespace muster::chaos
