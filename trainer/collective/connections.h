#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/descriptor.h"
#include "common/error.h"
#include "trainer/collective/admission.h"

namespace muster::collective {

// TCP connections between each two members of a group, driven by the thread that uses them. What
// goes over them are frames: a kind, an index, and as many bytes as both sides know it to have; a
// peer's word for a size is never taken.
//
// Once a connection has ended, or told something that cannot be, calls throw Broken and all of them
// are good for nothing any more.
class Connections {
 public:
  class Broken : public Unavailable {
   public:
    using Unavailable::Unavailable;
  };
  struct Frame {
    uint32_t kind = 0;
    uint32_t index = 0;
  };
  // Where a frame of `peer` is to be put, in order. Throws Broken for one that cannot be. Called
  // from progress() and wait().
  using Destination = std::function<std::span<const iovec>(int peer, Frame frame)>;
  // A frame of `peer` is there, all of it.
  using Received = std::function<void(int peer, Frame frame)>;
  // What is sent and not taken for so long breaks a connection.
  static constexpr std::chrono::milliseconds kUntaken{10000};

  // We are `member` of `members`, and listen at `host`, an address or a name. Throws Unavailable.
  Connections(int member, int members, const std::string& host);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // How the others reach us: an address, and a word that only those know who were told of it.
  const std::string& endpoint() const { return endpoint_; }
  // Connects to all, by their endpoints. `over` is asked some fifty times a second and ends it.
  // Throws Invalid for what is no endpoint; Broken.
  void connect(const std::vector<std::string>& endpoints, const std::function<bool()>& over);

  void on_frame(Destination destination, Received received);
  // The memory must stay as it is until sent().
  void send(int peer, Frame frame, std::span<const iovec> parts);
  // Moves what can be moved without waiting.
  void progress();
  // Moves until `ready`. Throws Broken also when `over`.
  void wait(const std::function<bool()>& ready, const std::function<bool()>& over);
  bool sent() const;                         // everything
  uint64_t moved() const { return moved_; }  // bytes, either way
  // Has whoever is in wait() look at `ready`, or await_wake() return; from any thread.
  void wake();
  // Comes back when woken, or after `most`. Touches nothing else of this, so that meanwhile another
  // thread may use it.
  void await_wake(std::chrono::milliseconds most);
  // All of them, so that the others learn of it; every call throws Broken after that.
  void close();

 private:
  struct Peer {
    Descriptor socket;
    std::string name;
    std::deque<iovec> out;
    std::deque<Frame> frames;  // sent ones' memory
    Frame frame;               // that is being received
    size_t frame_read = 0;     // bytes of it
    std::vector<iovec> in;     // what is left of its content
    size_t next = 0;
    bool receiving = false;
  };

  void dial(int peer, const std::string& endpoint, const std::function<bool()>& over);
  void admit(Admission::Admitted& admitted, uint64_t word);
  bool move(int peer);
  bool write_some(Peer& peer);
  bool read_some(int index, Peer& peer);
  void begin_content(int index, Peer& peer);
  void poll_all(std::chrono::milliseconds most);
  [[noreturn]] void fail(const Peer& peer, const std::string& why) const;
  void require_open() const;

  const int member_;
  const int members_;
  Descriptor listener_;
  Descriptor waker_;
  std::string endpoint_;
  std::vector<Peer> peers_;  // by member
  bool closed_ = false;
  uint64_t moved_ = 0;
  Destination destination_;
  Received received_;
};

}  // namespace muster::collective
