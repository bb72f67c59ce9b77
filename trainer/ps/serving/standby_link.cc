#include "trainer/ps/serving/standby_link.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <thread>

#include "common/program/log.h"
#include "common/threads/mutex.h"
#include "trainer/group/backoff.h"
#include "trainer/group/grpc_server.h"
#include "trainer/group/peer_registry.h"
#include "trainer/ps/transport/send_queue.h"
#include "trainer/ps/transport/wire.h"

namespace muster::ps {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

constexpr char kFollowMethod[] = "/muster.ParameterServer/Follow";
constexpr milliseconds kGlanceAtStandby{200};

// One stream, from its opening to its end.
class StandbyStream : private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  using OnReply = std::function<bool(const Acknowledgement&)>;

  // `on_reply` returns whether the stream is still useful; `on_broken` is called when the stream is
  // not useful any more. Both are called without a lock of this class.
  StandbyStream(const std::string& address, const group::Identity& identity, OnReply on_reply,
                std::function<void()> on_broken)
      : stub_(group::make_channel(address, identity)),
        plaintext_(!identity),
        on_reply_(std::move(on_reply)),
        on_broken_(std::move(on_broken)),
        outgoing_(plaintext_) {
    const MutexLock lock(mutex_);
    stub_.PrepareBidiStreamingCall(&context_, kFollowMethod, grpc::StubOptions(), this);
    AddHold();  // messages come from the shard's threads
    StartRead(&incoming_);
    StartCall();
  }

  ~StandbyStream() override {
    context_.TryCancel();
    RemoveHold();
    MutexLock lock(mutex_);
    done_changed_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return done_; });
  }

  void send(const StandbyFeed::Message& message) {
    Forward header = message.header;
    size_t floats = 0;
    for (const Lendable::Loan& loan : message.values) floats += loan->size();
    header.set_floats(floats);
    const MutexLock lock(mutex_);
    if (broken_) return;
    if (floats == 0) outgoing_.push(encode(header, grpc::Slice()));
    for (const Lendable::Loan& loan : message.values) push_locked(header, slice_of(loan));
    write_next_locked();
  }

  bool broken() const {
    const MutexLock lock(mutex_);
    return broken_;
  }

 private:
  void OnReadDone(bool ok) override {
    if (ok && (!plaintext_ || unseal(incoming_))) {
      const auto reply = decode_acknowledgement(incoming_);
      if (reply && reply->status() == Acknowledgement::REJECTED)
        log::warning("a second copy was rejected: " + reply->message());
      if (reply && on_reply_(*reply)) return StartRead(&incoming_);
    }
    fail();
  }

  void OnWriteDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      outgoing_.written();
      if (ok) return write_next_locked();
    }
    fail();
  }

  void OnDone(const grpc::Status&) override {
    const MutexLock lock(mutex_);
    done_ = true;
    done_changed_.notify_all();
  }

  // Queues `values` in chunks, from the header's offset on, and moves that offset past them.
  void push_locked(Forward& header, const grpc::Slice& values) MUSTER_REQUIRES(mutex_) {
    constexpr size_t kChunk = kChunkFloats * sizeof(float);
    for (size_t begin = 0; begin < values.size(); begin += kChunk) {
      const size_t end = std::min(values.size(), begin + kChunk);
      outgoing_.push(encode(header, values.sub(begin, end)));
      header.set_offset(header.offset() + (end - begin) / sizeof(float));
    }
  }

  void write_next_locked() MUSTER_REQUIRES(mutex_) {
    if (broken_) return;
    if (const grpc::ByteBuffer* message = outgoing_.next()) StartWrite(message);
  }

  void fail() {
    {
      const MutexLock lock(mutex_);
      broken_ = true;
    }
    on_broken_();
  }

  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  const bool plaintext_;
  const OnReply on_reply_;
  const std::function<void()> on_broken_;
  grpc::ClientContext context_;
  mutable Mutex mutex_;
  ConditionVariable done_changed_;
  grpc::ByteBuffer incoming_;
  SendQueue outgoing_ MUSTER_GUARDED_BY(mutex_);
  bool broken_ MUSTER_GUARDED_BY(mutex_) = false;
  bool done_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace

struct StandbyLink::Impl {
  Impl(ShardHost& shard_host, group::Identity of_job)
      : host(shard_host), identity(std::move(of_job)) {}

  void run();
  void connect(const ShardHost::Standby& standby, const std::string& address);
  void disconnect();
  void nudge();
  void keep();

  ShardHost& host;
  const group::Identity identity;
  Mutex mutex;
  ConditionVariable changed;
  bool nudged MUSTER_GUARDED_BY(mutex) = false;
  bool closing MUSTER_GUARDED_BY(mutex) = false;
  std::string address MUSTER_GUARDED_BY(mutex);  // address of the standby in the view
  // The members below are used only by our thread.
  std::unique_ptr<StandbyStream> stream;
  ShardHost::Standby connected;
  Clock::time_point lost = Clock::now();  // start of the time without a stream
  Clock::time_point again;                // time of the next attempt
  group::Backoff backoff{milliseconds(20), milliseconds(500)};
  std::thread thread;
};

void StandbyLink::Impl::nudge() {
  const MutexLock lock(mutex);
  nudged = true;
  changed.notify_all();
}

void StandbyLink::Impl::connect(const ShardHost::Standby& standby, const std::string& to) {
  connected = standby;
  stream = std::make_unique<StandbyStream>(
      to, identity, [this](const Acknowledgement& reply) { return host.acknowledged(reply); },
      [this] { nudge(); });
  host.greet_standby([this](const StandbyFeed::Message& message) { stream->send(message); });
}

void StandbyLink::Impl::disconnect() {
  host.cut_standby();
  stream.reset();
  lost = Clock::now();
  again = lost + backoff.next();
}

// Keeps a stream to the current standby, and to no other process.
void StandbyLink::Impl::keep() {
  const ShardHost::Standby standby = host.standby();
  const auto now = Clock::now();
  const bool current = standby.session == connected.session;
  if (stream && (stream->broken() || !current)) disconnect();
  if (!current) backoff.reset();
  if (stream || standby.incarnation == 0) return;
  if (now - lost > group::PeerRegistry::kSilence) host.lose_standby();
  std::string to;
  {
    const MutexLock lock(mutex);
    to = address;
  }
  if (!to.empty() && (!current || now >= again)) connect(standby, to);
}

void StandbyLink::Impl::run() {
  MutexLock lock(mutex);
  while (!closing) {
    lock.unlock();
    keep();
    lock.lock();
    changed.wait_for(lock, kGlanceAtStandby,
                     [&]() MUSTER_REQUIRES(mutex) { return closing || nudged; });
    nudged = false;
  }
  lock.unlock();
  disconnect();
}

StandbyLink::StandbyLink(ShardHost& host, const group::Identity& identity)
    : impl_(std::make_unique<Impl>(host, identity)) {
  impl_->thread = std::thread([this] { impl_->run(); });
}

StandbyLink::~StandbyLink() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->closing = true;
    impl_->changed.notify_all();
  }
  impl_->thread.join();
}

void StandbyLink::look(const GroupView& view) {
  if (impl_->host.shard() >= view.places_size()) return;
  const ShardPlace& place = view.places(impl_->host.shard());
  if (place.standby_incarnation() == 0) return;
  if (place.standby() >= static_cast<uint32_t>(view.ps_addresses_size())) return;
  {
    const MutexLock lock(impl_->mutex);
    impl_->address = view.ps_addresses(static_cast<int>(place.standby()));
  }
  impl_->host.name_standby(view.generation(), place.standby_incarnation());
  impl_->nudge();
}

}  // namespace muster::ps
