#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/threads/mutex.h"
#include "trainer/ps/serving/shard_host.h"
#include "trainer/ps/transport/member_mailbox.h"
#include "trainer/ps/transport/send_queue.h"
#include "trainer/ps/transport/wire.h"

namespace muster::ps {

class ExchangeStream;

// The members' open streams, by session. Its mutex guards what is written to them.
class ExchangeStreams {
 public:
  using Welcome = std::function<void(const std::string& peer)>;

  // `hosts` has the hosts of the shards that may be on this ps; they must outlive this object.
  // `welcome` is called, with gRPC's name of the peer, for each peer that has shown that it is a
  // member. `plaintext`: the server has no TLS.
  ExchangeStreams(std::vector<ShardHost*> hosts, Welcome welcome, bool plaintext);
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
  const Welcome welcome_;
  const WireType wire_;
  const bool plaintext_;
  Mutex mutex_;
  ConditionVariable empty_;
  uint64_t next_session_ MUSTER_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, ExchangeStream*> streams_ MUSTER_GUARDED_BY(mutex_);
};

// One member's stream, and the member's shared memory if the member offered memory on this host.
// The chunks of a push are collected and then passed to the shard together. There is one request at
// a time, through the stream or the memory.
class ExchangeStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ExchangeStream(ExchangeStreams& streams, uint64_t session, std::string peer)
      : streams_(streams),
        session_(session),
        peer_(std::move(peer)),
        outgoing_(streams.plaintext_) {}

  void begin();
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;
  enum class Request { none, by_stream, by_mailbox };
  // ExchangeStreams, which is streams_ and holds its mutex, calls this before the functions below.
  void assert_locked() const MUSTER_ASSERTS(streams_.mutex_) {}
  Request pending_locked() const MUSTER_REQUIRES(streams_.mutex_) { return pending_; }
  // `values` are the shard's parameters, shared by all members that get them.
  void reply_locked(const ReplyHeader& header, const grpc::Slice& values)
      MUSTER_REQUIRES(streams_.mutex_);
  void answer_locked(const ReplyHeader& header, std::span<const float> values)
      MUSTER_REQUIRES(streams_.mutex_);
  void leave_locked() MUSTER_REQUIRES(streams_.mutex_);
  bool is_mute_locked(std::chrono::steady_clock::time_point opened_before) const
      MUSTER_REQUIRES(streams_.mutex_) {
    return !greeted_ && opened_ < opened_before;
  }

 private:
  void receive() MUSTER_REQUIRES(receiving_);
  void read_on_locked() MUSTER_REQUIRES(streams_.mutex_);
  void write_next_locked() MUSTER_REQUIRES(streams_.mutex_);
  std::string greet(const ExchangeHello& hello) MUSTER_REQUIRES(receiving_);
  bool receive_from_mailbox(const std::optional<PushHeader>& header);
  void consider(const SharedMemoryOffer& offer) MUSTER_REQUIRES(receiving_);
  bool begin_request(Request way);
  bool gather(const Push& message, size_t count, size_t at_byte) MUSTER_REQUIRES(receiving_);
  void reject(uint64_t sequence, const std::string& message) MUSTER_REQUIRES(receiving_);
  void reply(Status status, uint64_t sequence, const std::string& message);
  void leave();

  ExchangeStreams& streams_;
  const uint64_t session_;
  const std::string peer_;  // the peer's address
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  // Both are set while the first message is read, before another thread can reach them.
  ShardHost* host_ = nullptr;  // the host of the shard that the first message names
  std::unique_ptr<MemberMailbox> mailbox_;
  // gRPC orders its callbacks after earlier writes; without this lock ThreadSanitizer does not see
  // this order.
  Mutex begun_;
  Mutex receiving_;  // messages come one at a time, but from any thread
  grpc::ByteBuffer incoming_ MUSTER_GUARDED_BY(receiving_);
  uint32_t rank_ MUSTER_GUARDED_BY(receiving_) = 0;  // rank in the newest message
  std::vector<float> gradients_ MUSTER_GUARDED_BY(receiving_);
  size_t gathered_ MUSTER_GUARDED_BY(receiving_) = 0;
  Request pending_ MUSTER_GUARDED_BY(streams_.mutex_) = Request::none;
  Reply::SharedMemory decision_ MUSTER_GUARDED_BY(streams_.mutex_) = Reply::NOT_DECIDED;
  std::string refusal_ MUSTER_GUARDED_BY(streams_.mutex_);
  SendQueue outgoing_ MUSTER_GUARDED_BY(streams_.mutex_);
  // Whether reading waits until the queued messages have been written.
  bool resting_ MUSTER_GUARDED_BY(streams_.mutex_) = false;
  bool greeted_ MUSTER_GUARDED_BY(streams_.mutex_) = false;
  bool closing_ MUSTER_GUARDED_BY(streams_.mutex_) = false;  // close after the queued messages
  bool finished_ MUSTER_GUARDED_BY(streams_.mutex_) = false;
};

}  // namespace muster::ps
