#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/system/descriptor.h"
#include "trainer/collective/admission.h"
#include "trainer/group/address.h"

namespace muster::collective {

// TCP connections between all pairs of members of a group, driven by the thread that uses them.
// They carry frames: a kind, an index, and a content of a size that both sides already know; no
// size is ever taken from a peer. In plaintext the CRC-32C of a frame follows its content, because
// TCP's checksum misses about one of 65,000 damaged segments; TLS has a better checksum.
//
// Once a connection has ended, or a peer has sent an impossible frame, all calls throw Broken, and
// no connection can be used any more.
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
  // The first bytes of a frame. The frame's CRC-32C continues from `check` with the content.
  struct Header {
    Frame frame;
    uint32_t check = 0;  // the CRC-32C of `frame`

    static Header of(Frame frame);
  };
  // Returns the memory that receives a frame of `peer`, in order. Throws Broken for an impossible
  // frame. Called from progress() and wait().
  using Destination = std::function<std::span<const iovec>(int peer, Frame frame)>;
  // Called when a frame of `peer` has been received completely.
  using Received = std::function<void(int peer, Frame frame)>;
  // A connection breaks when the peer has not accepted sent data for this time.
  static constexpr std::chrono::milliseconds kUntaken{10000};

  // This process is `member` of `members`, all of one identity, and listens on `host`, an address
  // or a name, at one of `ports`. Throws Unavailable.
  Connections(int member, int members, const std::string& host, const group::PortRange& ports,
              group::Identity identity);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Returns the endpoint by which other members reach us: an address and a secret word.
  const std::string& endpoint() const { return endpoint_; }
  // Connects to all members, by their endpoints. `over` is called some fifty times a second; when
  // it returns true, the call throws Broken. Throws Invalid for a malformed endpoint.
  void connect(const std::vector<std::string>& endpoints, const std::function<bool()>& over);

  void on_frame(Destination destination, Received received);
  // The memory must stay unchanged until sent() returns true. For several peers the data are read
  // only once for the CRC.
  void send(std::span<const int> peers, Frame frame, std::span<const iovec> parts);
  // Sends and receives what is possible without waiting.
  void progress();
  // Sends and receives until `ready` returns true. Throws Broken also when `over` returns true.
  void wait(const std::function<bool()>& ready, const std::function<bool()>& over);
  bool sent() const;                         // whether everything is sent
  uint64_t moved() const { return moved_; }  // bytes, sent and received
  // Makes a thread in wait() call `ready` again, or await_wake() return. Thread-safe.
  void wake();
  // Returns when woken, or after `most`. Uses no other part of this object, so another thread may
  // use the object meanwhile.
  void await_wake(std::chrono::milliseconds most);
  // Closes all connections, so that the other members notice; every later call throws Broken.
  void close();

 private:
  struct Sent {
    Header header;
    uint32_t crc = 0;
  };
  struct Peer {
    std::optional<Stream> stream;
    std::string name;
    std::deque<iovec> out;
    std::deque<Sent> frames;  // frames being sent
    Header header;            // header of the frame being received
    size_t header_read = 0;   // received bytes of the header
    std::vector<iovec> in;    // the rest of its content and CRC
    size_t next = 0;
    uint32_t crc = 0, received_crc = 0;
    bool receiving = false;

    bool has_more() const { return !out.empty() || (stream && stream->holds()); }  // to send
  };

  void dial(int peer, const std::string& endpoint, const std::function<bool()>& over);
  void admit(Admission::Admitted& admitted, uint64_t word);
  bool move(int peer);
  void shake_hands(Peer& peer, const std::function<bool()>& over);
  bool write_some(Peer& peer);
  bool read_some(int index, Peer& peer);
  void begin_content(int index, Peer& peer);
  void take_content(Peer& peer, size_t moved);
  void end_content(int index, Peer& peer);
  void poll_all(std::chrono::milliseconds most);
  template <class Call>
  auto on_stream(const Peer& peer, const Call& call) const;
  [[noreturn]] void fail(const Peer& peer, const std::string& why) const;
  void require_open() const;

  const int member_;
  const int members_;
  const group::Identity identity_;
  const bool checks_;  // frames have a CRC
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
