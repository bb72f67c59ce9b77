#include "trainer/ps/member/grpc_link.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <future>

#include "common/threads/mutex.h"
#include "trainer/ps/transport/send_queue.h"

namespace muster::ps {

namespace {

constexpr char kMethod[] = "/muster.ParameterServer/Exchange";

// Memory from which gRPC may still be sending. gRPC cannot be stopped; it can only be waited for.
class Sending {
 public:
  grpc::Slice slice(std::span<const float> values) {
    if (values.empty()) return {};
    return {const_cast<float*>(values.data()), values.size_bytes(),
            [](void* share) { delete static_cast<Share*>(share); }, new Share(share_)};
  }
  // Waits until no slice of it is in use; no new slice can be made after this call.
  void wait() {
    share_.reset();
    ended_.wait();
  }

 private:
  struct End {
    std::promise<void> promise;
    ~End() { promise.set_value(); }
  };
  using Share = std::shared_ptr<End>;

  Share share_ = std::make_shared<End>();
  const std::future<void> ended_ = share_->promise.get_future();
};

class StreamLink : public GrpcLink,
                   private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  StreamLink(std::shared_ptr<grpc::Channel> channel, const LinkHello& hello, LinkBell& bell)
      : stub_(std::in_place, std::move(channel)),
        hello_(hello),
        bell_(bell),
        outgoing_(hello.plaintext) {
    const MutexLock lock(mutex_);
    stub_->PrepareBidiStreamingCall(&*context_, kMethod, grpc::StubOptions(), this);
    AddHold();  // the member's thread sends
    StartRead(&incoming_);
    StartCall();
  }

  ~StreamLink() override {
    context_->TryCancel();
    RemoveHold();
    {
      MutexLock lock(mutex_);
      done_changed_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return done_; });
    }
    // The rest of a push may still be on its way to the socket. The connection ends with the
    // channel, at the latest when the system notices that the peer accepts no data
    // (group::make_channel).
    outgoing_.clear();
    context_.reset();
    stub_.reset();
    sending_.wait();
  }

  void send(const PushHeader& header, compute::ConstPlacedFloats placed_gradients,
            compute::PlacedFloats parameters) override {
    const std::span<const float> gradients = placed_gradients.host();
    const MutexLock lock(mutex_);
    sequence_ = header.sequence;
    parameters_ = parameters.host();
    received_ = 0;
    state_ = broken_ ? State::broken : State::waiting;
    if (broken_) return;
    Push message = to_message(header);
    if (!greeted_) greet(message);
    size_t begin = 0;
    do {
      const size_t count = std::min(gradients.size() - begin, kChunkFloats);
      message.set_offset(begin);
      outgoing_.push(encode(message, slice_of(gradients.subspan(begin, count))));
      begin += count;
    } while (begin < gradients.size());
    write_next();
  }

  State state() override {
    const MutexLock lock(mutex_);
    return state_;
  }
  ReplyHeader reply() const override {
    const MutexLock lock(mutex_);
    return reply_;
  }
  Decision decision() const override {
    const MutexLock lock(mutex_);
    return decision_;
  }
  bool ended() const override {
    const MutexLock lock(mutex_);
    return broken_;
  }

 private:
  void OnReadDone(bool ok) override {
    if (ok && receive()) {
      StartRead(&incoming_);
    } else {
      fail();
    }
    bell_.ring();
  }

  void OnWriteDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      outgoing_.written();
      if (ok) return write_next();
    }
    fail();
    bell_.ring();
  }

  void OnDone(const grpc::Status&) override {
    const MutexLock lock(mutex_);
    done_ = true;
    done_changed_.notify_all();
  }

  grpc::Slice slice_of(std::span<const float> values) MUSTER_REQUIRES(mutex_) {
    return hello_.wire == WireType::bfloat16 ? to_bfloat16(values) : sending_.slice(values);
  }

  void greet(Push& message) MUSTER_REQUIRES(mutex_) {
    greeted_ = true;
    message.mutable_hello()->set_job_uid(hello_.job_uid);
    message.mutable_hello()->set_version(hello_.version);
    message.mutable_hello()->set_layout_fingerprint(hello_.layout_fingerprint);
    message.mutable_hello()->set_wire(spec::name_of(hello_.wire));
    message.mutable_hello()->set_shard(static_cast<uint32_t>(hello_.shard));
    if (hello_.shared_memory)
      *message.mutable_hello()->mutable_shared_memory() = *hello_.shared_memory;
  }

  void write_next() MUSTER_REQUIRES(mutex_) {
    if (broken_) return;
    if (const grpc::ByteBuffer* message = outgoing_.next()) StartWrite(message);
  }

  // Takes one chunk of a reply; the last one completes it. Returns false for a message that is not
  // a reply to our request.
  bool receive() {
    const MutexLock lock(mutex_);
    if (hello_.plaintext && !unseal(incoming_)) return false;
    const auto decoded = decode_reply(incoming_, hello_.wire);
    if (!decoded) return false;
    const Reply& message = decoded->header;
    if (state_ != State::waiting || (message.sequence() != sequence_ && message.sequence() != 0))
      return true;
    if (message.status() == Reply::OK) {
      if (message.offset() != received_ || decoded->count > parameters_.size() - received_)
        return false;
      copy_floats(incoming_, decoded->at_byte, parameters_.subspan(received_, decoded->count),
                  hello_.wire);
      received_ += decoded->count;
      if (received_ < parameters_.size()) return true;
    }
    reply_ = from_message(message);
    if (message.shared_memory() != Reply::NOT_DECIDED)
      decision_ = {message.shared_memory(), message.shared_memory_refusal()};
    state_ = State::answered;
    return true;
  }

  // After a rejection the end of the stream is expected, and the answer stays valid.
  void fail() {
    const MutexLock lock(mutex_);
    broken_ = true;
    if (state_ != State::answered) state_ = State::broken;
  }

  std::optional<grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>> stub_;
  const LinkHello hello_;
  LinkBell& bell_;
  std::optional<grpc::ClientContext> context_{std::in_place};
  mutable Mutex mutex_;
  ConditionVariable done_changed_;
  grpc::ByteBuffer incoming_ MUSTER_GUARDED_BY(mutex_);
  Sending sending_ MUSTER_GUARDED_BY(mutex_);
  SendQueue outgoing_ MUSTER_GUARDED_BY(mutex_);
  std::span<float> parameters_ MUSTER_GUARDED_BY(mutex_);
  size_t received_ MUSTER_GUARDED_BY(mutex_) = 0;
  uint64_t sequence_ MUSTER_GUARDED_BY(mutex_) = 0;
  ReplyHeader reply_ MUSTER_GUARDED_BY(mutex_);
  Decision decision_ MUSTER_GUARDED_BY(mutex_);
  State state_ MUSTER_GUARDED_BY(mutex_) = State::idle;
  bool greeted_ MUSTER_GUARDED_BY(mutex_) = false;
  bool broken_ MUSTER_GUARDED_BY(mutex_) = false;
  bool done_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<GrpcLink> make_grpc_link(std::shared_ptr<grpc::Channel> channel,
                                         const LinkHello& hello, LinkBell& bell) {
  return std::make_unique<StreamLink>(std::move(channel), hello, bell);
}

}  // namespace muster::ps
