#include "trainer/group/rendezvous_client.h"

#include <atomic>
#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/hang_guard.h"
#include "common/program/log.h"
#include "common/text/shorten.h"
#include "common/threads/mutex.h"
#include "proto/muster/rendezvous.grpc.pb.h"
#include "trainer/group/backoff.h"
#include "trainer/group/grpc_server.h"
#include "trainer/group/peer_registry.h"

namespace muster::group {

using Clock = std::chrono::steady_clock;

// One attempt: a stream from its opening to its end.
class RendezvousStream : public grpc::ClientBidiReactor<PeerMessage, GroupMessage> {
 public:
  using OnView = std::function<void(const GroupMessage&)>;

  RendezvousStream(const std::shared_ptr<grpc::Channel>& channel, PeerMessage first, OnView on_view,
                   std::function<void()> on_nudge)
      : stub_(Rendezvous::NewStub(channel)),
        on_view_(std::move(on_view)),
        on_nudge_(std::move(on_nudge)),
        outgoing_(std::move(first)) {
    const MutexLock lock(mutex_);
    context_.set_wait_for_ready(false);
    stub_->async()->Attend(&context_, this);
    // Writes come from our own thread, not from a callback: the hold delays OnDone until release().
    AddHold();
    writing_ = true;
    StartWrite(&outgoing_);
    StartRead(&incoming_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      broken_ = broken_ || !ok;
    }
    if (!ok) return on_nudge_();
    on_view_(incoming_);
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    bool missed = false;
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      if (!ok) broken_ = true;
      missed = std::exchange(missed_, false);
      changed_.notify_all();
    }
    if (missed) on_nudge_();
  }

  void OnDone(const grpc::Status&) override {
    const MutexLock lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  bool broken() const {
    const MutexLock lock(mutex_);
    return broken_;
  }

  void send(const PeerMessage& message) {
    const MutexLock lock(mutex_);
    missed_ = writing_;
    if (writing_ || broken_) return;
    outgoing_ = message;
    writing_ = true;
    StartWrite(&outgoing_);
  }

  // Ends the stream and waits until gRPC has finished with it.
  void close() {
    context_.TryCancel();
    RemoveHold();
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return done_; });
  }

 private:
  const std::unique_ptr<Rendezvous::Stub> stub_;
  OnView on_view_;
  std::function<void()> on_nudge_;
  grpc::ClientContext context_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  PeerMessage outgoing_ MUSTER_GUARDED_BY(mutex_);
  GroupMessage incoming_;
  bool writing_ MUSTER_GUARDED_BY(mutex_) = false;
  bool missed_ MUSTER_GUARDED_BY(mutex_) = false;  // a message came while another was being written
  bool broken_ MUSTER_GUARDED_BY(mutex_) = false;
  bool done_ MUSTER_GUARDED_BY(mutex_) = false;
};

struct RendezvousClient::Impl {
  void run();
  bool attend(const Way& way);
  void receive(const GroupMessage& message, bool doubtful);
  void nudge();
  void fill(PeerMessage& message) const;

  std::string peer;
  Hello hello;
  Report report;
  Ways ways;
  mutable Mutex mutex;
  mutable StoppableConditionVariable changed;
  bool closing MUSTER_GUARDED_BY(mutex) = false;
  bool nudged MUSTER_GUARDED_BY(mutex) = false;
  bool is_connected MUSTER_GUARDED_BY(mutex) = false;
  bool said_waiting MUSTER_GUARDED_BY(mutex) = false;
  std::string rejected MUSTER_GUARDED_BY(mutex);
  bool answered MUSTER_GUARDED_BY(mutex) = false;  // the rendezvous has answered in this attempt
  std::string put_off
      MUSTER_GUARDED_BY(mutex);  // rank 0's last answer, if it said that we may not join yet
  GroupView view MUSTER_GUARDED_BY(mutex);
  std::atomic<uint64_t> revision{0};
  Clock::time_point heard MUSTER_GUARDED_BY(mutex) = Clock::now();
  Backoff backoff MUSTER_GUARDED_BY(mutex){std::chrono::milliseconds(50),
                                           std::chrono::milliseconds(400)};
  std::thread thread;
};

void RendezvousClient::Impl::receive(const GroupMessage& message, bool doubtful) {
  if (doubtful && !message.rejected().empty())
    return log::info("that was not our rendezvous: " + message.rejected());
  const MutexLock lock(mutex);
  answered = true;
  if (!message.put_off().empty()) {
    if (std::exchange(put_off, message.put_off()) != message.put_off())
      log::warning("the rendezvous at " + peer + " does not let us join yet: " + put_off);
    changed.notify_all();
    return;
  }
  heard = Clock::now();
  put_off.clear();
  if (!message.rejected().empty()) {
    rejected = message.rejected();
  } else {
    view = message.view();
    revision.fetch_add(1, std::memory_order_relaxed);
    is_connected = true;
    said_waiting = false;
    backoff.reset();
  }
  changed.notify_all();
}

void RendezvousClient::Impl::nudge() {
  const MutexLock lock(mutex);
  nudged = true;
  changed.notify_all();
}

// A report may need a lock that another thread never releases; this counts as a hang of this
// process.
void RendezvousClient::Impl::fill(PeerMessage& message) const {
  const WatchedWork watched(WatchedWork::Kind::computing, "reporting to the rendezvous");
  if (report) report(message);
  const auto now = std::chrono::system_clock::now();
  for (const Stall& stall : current_stalls()) {
    StallMessage& said = *message.add_stalls();
    said.set_doing(shorten(stall.doing, PeerRegistry::kMostOfStall));
    said.set_since(std::chrono::system_clock::to_time_t(now - stall.lasted));
    said.set_storage(stall.kind == WatchedWork::Kind::storage);
    if (message.stalls_size() == PeerRegistry::kMostStalls) break;
  }
}

// Keeps one stream until it breaks, falls silent or we close. Returns whether the stream reached
// the rendezvous.
bool RendezvousClient::Impl::attend(const Way& way) {
  PeerMessage first;
  *first.mutable_hello() = hello;
  fill(first);
  const auto opened = Clock::now();
  {
    const MutexLock lock(mutex);
    answered = false;
  }
  RendezvousStream stream(
      way.channel, first,
      [this, &way](const GroupMessage& message) { receive(message, way.doubtful); },
      [this] { nudge(); });
  MutexLock lock(mutex);
  while (!closing && rejected.empty()) {
    changed.wait_for(lock, PeerRegistry::kHeartbeat, [&]() MUSTER_REQUIRES(mutex) {
      return closing || nudged || !rejected.empty();
    });
    nudged = false;
    if (stream.broken() || Clock::now() - std::max(heard, opened) > PeerRegistry::kSilence) break;
    lock.unlock();
    PeerMessage heartbeat;
    fill(heartbeat);
    stream.send(heartbeat);
    lock.lock();
  }
  is_connected = false;
  const bool reached = answered;
  if (!reached) put_off.clear();  // the rendezvous that put us off does not answer any more
  lock.unlock();
  stream.close();
  return reached;
}

void RendezvousClient::Impl::run() {
  for (bool reached = false;;) {
    reached = attend(ways(reached));
    MutexLock lock(mutex);
    if (closing || !rejected.empty()) return;
    if (!std::exchange(said_waiting, true)) log::info("waiting for the rendezvous at " + peer);
    changed.wait_for(lock, backoff.next(), [&]() MUSTER_REQUIRES(mutex) { return closing; });
    if (closing) return;
  }
}

RendezvousClient::RendezvousClient(std::shared_ptr<grpc::Channel> channel, std::string peer,
                                   Hello hello, Report report)
    : RendezvousClient([channel = std::move(channel)](bool) { return Way{channel}; },
                       std::move(peer), std::move(hello), std::move(report)) {}

RendezvousClient::RendezvousClient(Ways ways, std::string peer, Hello hello, Report report)
    : impl_(std::make_unique<Impl>()) {
  impl_->peer = std::move(peer);
  impl_->hello = std::move(hello);
  impl_->report = std::move(report);
  impl_->ways = std::move(ways);
  impl_->thread = std::thread([this] { impl_->run(); });
}

RendezvousClient::~RendezvousClient() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->closing = true;
    impl_->changed.notify_all();
  }
  impl_->thread.join();
}

GroupView RendezvousClient::view() const {
  const MutexLock lock(impl_->mutex);
  return impl_->view;
}

GroupView RendezvousClient::require_view(std::chrono::milliseconds patience) const {
  return wait([](const GroupView&) { return true; }, {}, {}, patience);
}

uint64_t RendezvousClient::revision() const {
  return impl_->revision.load(std::memory_order_relaxed);
}

bool RendezvousClient::connected() const {
  const MutexLock lock(impl_->mutex);
  return impl_->is_connected;
}

std::chrono::milliseconds RendezvousClient::silence() const {
  const MutexLock lock(impl_->mutex);
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - impl_->heard);
}

void RendezvousClient::report_now() {
  impl_->nudge();
}

GroupView RendezvousClient::wait(const std::function<bool(const GroupView&)>& ready,
                                 std::stop_token stop, std::chrono::milliseconds wait,
                                 std::chrono::milliseconds patience) const {
  MutexLock lock(impl_->mutex);
  impl_->changed.wait_for(lock, stop, wait, [&]() MUSTER_REQUIRES(impl_->mutex) {
    return !impl_->rejected.empty() || ready(impl_->view);
  });
  if (!impl_->rejected.empty())
    throw Invalid("the rendezvous at " + impl_->peer + " rejected this replica: " + impl_->rejected,
                  kProtocol);
  if (Clock::now() - impl_->heard > patience && !impl_->put_off.empty())
    throw Unavailable("the rendezvous at " + impl_->peer + " has not let this replica join for " +
                      std::to_string(patience.count() / 1000) + " s: " + impl_->put_off);
  if (Clock::now() - impl_->heard > patience)
    throw Unavailable("the rendezvous at " + impl_->peer + " has not answered for " +
                      std::to_string(patience.count() / 1000) + " s");
  return impl_->view;
}

}  // namespace muster::group
