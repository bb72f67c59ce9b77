#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/net/connection_limit.h"
#include "common/system/descriptor.h"
#include "common/threads/mutex.h"

namespace muster::group {

// Listens for a gRPC server and accepts its connections. A peer is a stranger until welcome() says
// that its connection is of the job. The number of strangers from one address and in all, the time
// of each, and the bytes that they send are limited; other connections are not counted. The number
// of strangers that have left or were disconnected is logged, at most once a minute. Thread-safe.
class Acceptor {
 public:
  struct Limits {
    ConnectionLimit::Most strangers;
    std::chrono::milliseconds patience;  // how long a stranger may stay
    // Any connection ends when its peer has not taken data for this time.
    std::chrono::milliseconds untaken;
    // The limits of the bytes from one stranger, and from all present strangers. If there are too
    // many bytes, the strangers that have sent most are disconnected. Bytes are counted every few
    // milliseconds, so a little more may come.
    uint64_t bytes_of_one = UINT64_MAX;
    uint64_t bytes_of_all = UINT64_MAX;
  };
  // Receives an accepted socket: connected and non-blocking.
  using Take = std::function<void(Descriptor)>;

  // Listens at once for peers that connect to `address` ("host:port"), but accepts nothing before
  // start(). Throws Unavailable naming the address if it cannot be bound.
  Acceptor(const std::string& address, const Limits& limits);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Passes each connection to `take`, on a separate thread.
  void start(Take take);
  // Stops accepting and listening. Accepted connections stay open.
  void stop();
  // Notes that the connection of `peer`, in gRPC's form ("ipv4:10.0.0.1:4242"), is of the job.
  void welcome(const std::string& peer);

 private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    Descriptor socket;  // a second descriptor, to see the connection's end and to end it
    std::string peer;
    Clock::time_point until;
  };

  void run();
  bool wait();
  void accept_from(const Descriptor& listener);
  void admit(Descriptor socket);
  void dismiss(uint64_t number) MUSTER_REQUIRES(mutex_);
  void dismiss_greedy() MUSTER_REQUIRES(mutex_);
  int milliseconds_left() const MUSTER_REQUIRES(mutex_);
  void tell();

  const Limits limits_;
  std::vector<Descriptor> listeners_;
  Descriptor waker_;
  Take take_;
  Mutex mutex_;
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  ConnectionLimit limit_ MUSTER_GUARDED_BY(mutex_);
  uint64_t next_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Stranger> strangers_ MUSTER_GUARDED_BY(mutex_);  // the oldest first
  // The number of strangers that have gone since the last log line, and the last of them.
  uint64_t gone_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::string last_gone_ MUSTER_GUARDED_BY(mutex_);
  Clock::time_point told_ = Clock::now();
  std::thread thread_;
};

}  // namespace muster::group
