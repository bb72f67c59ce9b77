#pragma once

#include <deque>
#include <functional>
#include <map>
#include <variant>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/ps/shard/messages.h"
#include "trainer/ps/shard/versions.h"

namespace muster::simulation {

struct PushMessage {
  int shard = 0;
  ps::PushHeader header;
  std::vector<float> gradients;
};
struct ReplyMessage {
  ps::ReplyHeader header;
  std::vector<float> values;
};
struct ForwardMessage {  // to a second copy
  Forward header;
  std::vector<ps::Lendable::Loan> values;  // read when it arrives: nobody may have written to them
};
struct Refusal {  // of a control call
  std::string reason;
};
struct End {};  // the other side has gone
using Message = std::variant<End, PushMessage, ReplyMessage, PeerMessage, GroupMessage, OpenRequest,
                             OpenReply, SnapshotRequest, SnapshotReply, WriteRequest, WriteReply,
                             Refusal, ForwardMessage, Acknowledgement>;

enum class Side { client, server };

// Streams between processes: messages on a stream arrive in order, after any time, unless the
// stream breaks. A control call is a stream of one request and one answer.
class SimulatedNetwork {
 public:
  struct Stream {
    int ends[2] = {};  // processes
    bool open[2] = {true, true};
    std::deque<Message> inbox[2];  // what is under way to each side
    bool held = false;
    bool call = false;

    int process(Side side) const { return ends[static_cast<int>(side)]; }
    bool is_open(Side side) const { return open[static_cast<int>(side)]; }
    std::deque<Message>& to(Side side) { return inbox[static_cast<int>(side)]; }
  };

  // Opens a stream. If `server` is no process, the client finds the stream closed.
  int connect(int client, int server, bool call = false);
  void send(int stream, Side from, Message message);
  // Closes a stream for `side`; the other side finds its end, after what was sent before.
  void close(int stream, Side side);
  void cut(int stream);
  // Ends the streams of a process that has died. What it sent last is lost where `lose` says so.
  void drop(int process, const std::function<bool(int nth)>& lose);

  // Takes the next message out; erases the stream once it is useless.
  Message take(int stream, Side side);
  std::map<int, Stream>& streams() { return streams_; }
  const std::map<int, Stream>& streams() const { return streams_; }

 private:
  void tidy(int stream);

  int next_ = 1;
  std::map<int, Stream> streams_;
};

}  // namespace muster::simulation
