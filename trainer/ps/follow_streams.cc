#include "trainer/ps/follow_streams.h"

#include "common/log.h"
#include "trainer/ps/send_queue.h"
#include "trainer/ps/wire.h"

namespace muster::ps {

constexpr size_t kMostUnread = 64;  // acknowledgements

// One stream: messages are gathered chunk by chunk, handed over whole, and acknowledged one by one.
class FollowStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit FollowStream(FollowStreams& streams) : streams_(streams) {}

  void begin() {
    const std::lock_guard lock(receiving_);
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    const std::lock_guard lock(receiving_);
    if (!ok || !receive()) return leave();
    const std::lock_guard sending(mutex_);
    read_on_locked();
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    outgoing_.written();
    if (!ok || (closing_ && outgoing_.empty())) return leave_locked();
    write_next_locked();
    if (resting_) read_on_locked();
  }

  void OnDone() override {
    { const std::lock_guard lock(receiving_); }  // nothing is being received any more
    {
      const std::lock_guard lock(streams_.mutex_);
      streams_.streams_.erase(this);
      streams_.empty_.notify_all();
    }
    delete this;
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    leave_locked();
  }

 private:
  // False for what is nonsense.
  bool receive() {
    auto decoded = decode_forward(incoming_);
    if (!decoded) return false;
    Forward& message = decoded->header;
    if (message.has_hello()) {
      if (host_) return false;  // it has been greeted
      greeting_ = message.hello();
      for (ShardHost* host : streams_.hosts_)
        if (host->shard() == static_cast<int>(greeting_.opening().shard()) &&
            host->is_of(greeting_.opening().job_uid()))
          host_ = host;
    }
    if (!host_) return false;
    if (message.offset() == 0) {
      if (message.floats() > host_->most_forwarded()) return false;
      values_.resize(message.floats());
      gathered_ = 0;
    }
    if (message.offset() != gathered_ || message.floats() != values_.size() ||
        decoded->count > values_.size() - gathered_)
      return false;
    if (decoded->count > 0)
      copy_floats(incoming_, decoded->at_byte,
                  std::span(values_).subspan(gathered_, decoded->count), WireType::float32);
    gathered_ += decoded->count;
    if (gathered_ == values_.size()) take(message);
    return true;
  }

  void take(const Forward& message) {
    const Acknowledgement reply = host_->follow(greeting_, message, values_);
    const std::string shard = "shard " + std::to_string(host_->shard());
    if (reply.status() == Acknowledgement::REJECTED)
      log::warning("a copy of " + shard + " was rejected: " + reply.message());
    if (message.has_state() && reply.status() == Acknowledgement::OK)
      log::info("takes over a copy of " + shard + ", at step " + std::to_string(reply.step()));
    if (message.whole() && reply.status() == Acknowledgement::OK)
      log::info("has a whole copy of " + shard + ", at step " + std::to_string(reply.step()));
    const std::lock_guard lock(mutex_);
    closing_ = reply.status() != Acknowledgement::OK;
    outgoing_.push(encode(reply, grpc::Slice()));
    write_next_locked();
  }

  // Who does not take its acknowledgements is asked for no more messages; who is refused, for none.
  void read_on_locked() {
    resting_ = outgoing_.size() >= kMostUnread;
    if (!resting_ && !closing_ && !finished_) StartRead(&incoming_);
  }

  void write_next_locked() {
    if (finished_) return;
    if (const grpc::ByteBuffer* message = outgoing_.next()) StartWrite(message);
  }

  void leave_locked() {
    if (std::exchange(finished_, true)) return;
    Finish(grpc::Status::OK);
  }

  FollowStreams& streams_;
  std::mutex receiving_;  // messages come one at a time, but from any thread
  grpc::ByteBuffer incoming_;
  ShardHost* host_ = nullptr;  // of the shard that the greeting names
  ForwardHello greeting_;
  std::vector<float> values_;
  size_t gathered_ = 0;
  std::mutex mutex_;
  SendQueue outgoing_;
  bool resting_ = false;  // nothing is read before more has been written
  bool closing_ = false;  // once what is queued has been written
  bool finished_ = false;
};

FollowStreams::~FollowStreams() {
  std::unique_lock lock(mutex_);
  empty_.wait(lock, [&] { return streams_.empty(); });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* FollowStreams::open() {
  auto* const stream = new FollowStream(*this);  // OnDone deletes it
  {
    const std::lock_guard lock(mutex_);
    streams_.insert(stream);
  }
  stream->begin();
  return stream;
}

void FollowStreams::close() {
  const std::lock_guard lock(mutex_);
  for (FollowStream* stream : streams_) stream->leave();
}

}  // namespace muster::ps
