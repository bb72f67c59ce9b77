#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "trainer/ps/serving/shard_host.h"
#include "trainer/ps/transport/member_mailbox.h"
#include "trainer/ps/transport/send_queue.h"
#include "trainer/ps/transport/wire.h"

namespace muster::ps {

class ExchangeStream;

// The members' open streams, by session. Its mutex guards what is written to them.
class ExchangeStreams {
 public:
  // `hosts` has the hosts of the shards that members may find here; they must outlive this object.
  explicit ExchangeStreams(std::vector<ShardHost*> hosts);
  ~ExchangeStreams();

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* open(
      grpc::CallbackServerContext* context);
  // Ends all streams, after the writes under way.
  void close();
  // Ends the streams that were opened before `opened_before` and have sent no greeting.
  void close_mute(std::chrono::steady_clock::time_point opened_before);

 private:
  friend class ExchangeStream;
  void deliver(const Shard& shard, const Shard::Answers& answers);
  ShardHost* host_of(uint32_t shard) const;

  const std::vector<ShardHost*> hosts_;
  const WireType wire_;
  std::mutex mutex_;
  std::condition_variable empty_;
  uint64_t next_session_ = 1;
  std::map<uint64_t, ExchangeStream*> streams_;
};

// One member's stream, and the member's shared memory if it offered some of this host. The chunks
// of a push are gathered, then given to the shard as one. There is one request at a time, through
// the stream or the memory.
class ExchangeStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ExchangeStream(ExchangeStreams& streams, uint64_t session, std::string peer)
      : streams_(streams), session_(session), peer_(std::move(peer)) {}

  void begin();
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;
  // These functions are called under ExchangeStreams::mutex_.
  enum class Request { none, by_stream, by_mailbox };
  Request pending_locked() const { return pending_; }
  // `values` are the shard's parameters, shared by all members that get them.
  void reply_locked(const ReplyHeader& header, const grpc::Slice& values);
  void answer_locked(const ReplyHeader& header, std::span<const float> values);
  void leave_locked();
  bool is_mute_locked(std::chrono::steady_clock::time_point opened_before) const {
    return !greeted_ && opened_ < opened_before;
  }

 private:
  void receive();
  void read_on_locked();
  void write_next_locked();
  std::string greet(const ExchangeHello& hello);
  bool receive_from_mailbox(const std::optional<PushHeader>& header);
  void consider(const SharedMemoryOffer& offer);
  bool begin_request(Request way);
  bool gather(const Push& message, size_t count, size_t at_byte);
  void reply(Status status, uint64_t sequence, const std::string& message);
  void leave();

  ExchangeStreams& streams_;
  const uint64_t session_;
  const std::string peer_;  // its address
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  ShardHost* host_ = nullptr;  // the host of the shard that the first message names
  // gRPC orders its callbacks after what was written before them; ThreadSanitizer does not see that
  // without this lock.
  std::mutex begun_;
  std::mutex receiving_;  // messages come one at a time, but from any thread
  grpc::ByteBuffer incoming_;
  uint32_t rank_ = 0;  // of the newest message
  std::vector<float> gradients_;
  size_t gathered_ = 0;
  std::unique_ptr<MemberMailbox> mailbox_;
  // Guarded by ExchangeStreams::mutex_, as is the rest.
  Request pending_ = Request::none;
  Reply::SharedMemory decision_ = Reply::NOT_DECIDED;
  std::string refusal_;
  SendQueue outgoing_;
  bool resting_ = false;  // nothing is read before what is queued has been written
  bool greeted_ = false;
  bool closing_ = false;  // once what is queued has been written
  bool finished_ = false;
};

}  // namespace muster::ps
