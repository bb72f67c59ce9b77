#include "trainer/ps/serving/follow_streams.h"

#include <nlohmann/json.hpp>

#include "common/program/log.h"
#include "trainer/ps/transport/send_queue.h"
#include "trainer/ps/transport/wire.h"

namespace muster::ps {

constexpr size_t kMostUnread = 64;  // number of acknowledgements

// One stream: the chunks of a message are gathered and given to the host as one; each message is
// acknowledged.
class FollowStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  FollowStream(FollowStreams& streams, std::string peer)
      : streams_(streams), peer_(std::move(peer)), outgoing_(streams.plaintext_) {}

  void begin() {
    const MutexLock lock(receiving_);
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    const MutexLock lock(receiving_);
    if (!ok) return leave();
    if (const std::string objection = receive(); !objection.empty()) {
      log::warning("what the ps at " + peer_ + " sends is not heard: " + objection,
                   {{"peer", peer_}});
      return leave();
    }
    const MutexLock sending(mutex_);
    read_on_locked();
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    outgoing_.written();
    if (!ok || (closing_ && outgoing_.empty())) return leave_locked();
    write_next_locked();
    if (resting_) read_on_locked();
  }

  void OnDone() override {
    { const MutexLock lock(receiving_); }  // nothing is being received any more
    {
      const MutexLock lock(streams_.mutex_);
      streams_.streams_.erase(this);
      streams_.empty_.notify_all();
    }
    delete this;
  }

  void leave() {
    const MutexLock lock(mutex_);
    leave_locked();
  }
  bool is_mute(std::chrono::steady_clock::time_point opened_before) {
    const MutexLock lock(mutex_);
    return !greeted_ && opened_ < opened_before;
  }

 private:
  // Handles the message received. Returns what is wrong with it, or an empty string.
  std::string receive() MUSTER_REQUIRES(receiving_) {
    if (streams_.plaintext_ && !unseal(incoming_))
      return "expected a part of a second copy, found one that was damaged on its way";
    auto decoded = decode_forward(incoming_);
    if (!decoded)
      return "expected a part of a second copy, found " + std::to_string(incoming_.Length()) +
             " bytes of something else";
    Forward& message = decoded->header;
    if (message.has_hello() == (host_ != nullptr))
      return host_ ? "expected one greeting, found another" : "expected a greeting, found none";
    if (message.has_hello()) {
      if (message.has_state() || message.has_update() || message.floats() > 0)
        return "expected a greeting alone, found more beside it";
      greet(message.hello());
      if (!host_)
        return "shard " + std::to_string(greeting_.opening().shard()) +
               " of that job is not at home here";
    }
    return gather(message, decoded->count, decoded->at_byte);
  }

  void greet(const ForwardHello& hello) MUSTER_REQUIRES(receiving_) {
    greeting_ = hello;
    for (ShardHost* host : streams_.hosts_)
      if (host->shard() == static_cast<int>(hello.opening().shard()) &&
          host->is_of(hello.opening().job_uid()))
        host_ = host;
    if (host_) streams_.welcome_(peer_);
    const MutexLock lock(mutex_);
    greeted_ = true;
  }

  // Chunks come in order and without holes, from 0.
  std::string gather(const Forward& message, size_t count, size_t at_byte)
      MUSTER_REQUIRES(receiving_) {
    const std::string of_shard = " of shard " + std::to_string(host_->shard());
    if (message.offset() == 0) {
      if (message.floats() > host_->most_forwarded())
        return "expected at most " + std::to_string(host_->most_forwarded()) + " floats" +
               of_shard + ", found " + std::to_string(message.floats());
      values_.resize(message.floats());
      gathered_ = 0;
    }
    if (message.offset() != gathered_ || message.floats() != values_.size() ||
        count > values_.size() - gathered_)
      return "expected the floats from " + std::to_string(gathered_) + " to " +
             std::to_string(values_.size()) + of_shard + ", found " + std::to_string(count) +
             " at " + std::to_string(message.offset()) + " of " + std::to_string(message.floats());
    if (count > 0)
      copy_floats(incoming_, at_byte, std::span(values_).subspan(gathered_, count),
                  WireType::float32);
    gathered_ += count;
    if (gathered_ == values_.size()) take(message);
    return "";
  }

  void take(const Forward& message) MUSTER_REQUIRES(receiving_) {
    const Acknowledgement reply = host_->follow(greeting_, message, values_);
    const std::string shard = "shard " + std::to_string(host_->shard());
    if (reply.status() == Acknowledgement::REJECTED)
      log::warning("a copy of " + shard + " from " + peer_ + " was rejected: " + reply.message(),
                   {{"peer", peer_}});
    if (message.has_state() && reply.status() == Acknowledgement::OK)
      log::info("takes over a copy of " + shard + ", at step " + std::to_string(reply.step()));
    if (message.whole() && reply.status() == Acknowledgement::OK)
      log::info("has a whole copy of " + shard + ", at step " + std::to_string(reply.step()));
    const MutexLock lock(mutex_);
    closing_ = reply.status() != Acknowledgement::OK;
    outgoing_.push(encode(reply, grpc::Slice()));
    write_next_locked();
  }

  // Stops reading messages from a peer that does not accept its acknowledgements, or that is
  // refused.
  void read_on_locked() MUSTER_REQUIRES(mutex_) {
    resting_ = outgoing_.size() >= kMostUnread;
    if (!resting_ && !closing_ && !finished_) StartRead(&incoming_);
  }

  void write_next_locked() MUSTER_REQUIRES(mutex_) {
    if (finished_) return;
    if (const grpc::ByteBuffer* message = outgoing_.next()) StartWrite(message);
  }

  void leave_locked() MUSTER_REQUIRES(mutex_) {
    if (std::exchange(finished_, true)) return;
    Finish(grpc::Status::OK);
  }

  FollowStreams& streams_;
  const std::string peer_;  // the peer's address
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  Mutex receiving_;  // messages come one at a time, but from any thread
  grpc::ByteBuffer incoming_ MUSTER_GUARDED_BY(receiving_);
  ShardHost* host_ MUSTER_GUARDED_BY(receiving_) = nullptr;  // host of the greeting's shard
  ForwardHello greeting_ MUSTER_GUARDED_BY(receiving_);
  std::vector<float> values_ MUSTER_GUARDED_BY(receiving_);
  size_t gathered_ MUSTER_GUARDED_BY(receiving_) = 0;
  Mutex mutex_;
  SendQueue outgoing_ MUSTER_GUARDED_BY(mutex_);
  bool greeted_ MUSTER_GUARDED_BY(mutex_) = false;
  bool resting_ MUSTER_GUARDED_BY(mutex_) = false;  // whether reading waits for writes
  bool closing_ MUSTER_GUARDED_BY(mutex_) = false;  // once what is queued has been written
  bool finished_ MUSTER_GUARDED_BY(mutex_) = false;
};

FollowStreams::~FollowStreams() {
  MutexLock lock(mutex_);
  empty_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return streams_.empty(); });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* FollowStreams::open(
    grpc::CallbackServerContext* context) {
  auto* const stream = new FollowStream(*this, context->peer());  // OnDone deletes it
  {
    const MutexLock lock(mutex_);
    streams_.insert(stream);
  }
  stream->begin();
  return stream;
}

void FollowStreams::close_mute(std::chrono::steady_clock::time_point opened_before) {
  const MutexLock lock(mutex_);
  for (FollowStream* stream : streams_)
    if (stream->is_mute(opened_before)) stream->leave();
}

void FollowStreams::close() {
  const MutexLock lock(mutex_);
  for (FollowStream* stream : streams_) stream->leave();
}

}  // namespace muster::ps
