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

// Listens for a gRPC server and accepts its connections. Each is a stranger's until welcome() says
// that it is of the job. There is a limit for the number of strangers, of one address and in all,
// for the time that each has and for what it sends; other connections are not counted. How many
// strangers have left or were sent away is logged, once a minute at most. Thread-safe.
class Acceptor {
 public:
  struct Limits {
    ConnectionLimit::Most strangers;
    std::chrono::milliseconds patience;  // with a stranger
    // A connection, whosever it is, ends when its peer has taken no data for so long.
    std::chrono::milliseconds untaken;
    // The most bytes that may come from a stranger, and from all that are there. Where there are
    // too many, those who have sent most are sent away. They are counted every few milliseconds, so
    // that some more may come.
    uint64_t bytes_of_one = UINT64_MAX;
    uint64_t bytes_of_all = UINT64_MAX;
  };
  // Takes a socket that has been accepted: connected and non-blocking.
  using Take = std::function<void(Descriptor)>;

  // Listens for peers that reach us as `address` ("host:port") at once, and accepts nothing before
  // start(). Throws Unavailable naming the address if it cannot be bound.
  Acceptor(const std::string& address, const Limits& limits);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Gives each connection to `take`, on a thread of its own.
  void start(Take take);
  // Neither accepts nor listens any more. What is accepted stays open.
  void stop();
  // The connection of `peer`, as gRPC names it ("ipv4:10.0.0.1:4242"), is of the job.
  void welcome(const std::string& peer);

 private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    Descriptor socket;  // a second descriptor: it tells when the connection ends, and can end it
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
  // The number of strangers who have gone since the log was told, and the last of them.
  uint64_t gone_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::string last_gone_ MUSTER_GUARDED_BY(mutex_);
  Clock::time_point told_ = Clock::now();
  std::thread thread_;
};

}  // namespace muster::group
