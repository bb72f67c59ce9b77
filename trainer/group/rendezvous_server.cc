#include "trainer/group/rendezvous_server.h"

#include <thread>

#include "common/program/log.h"
#include "common/text/shorten.h"
#include "common/threads/mutex.h"
#include "nlohmann/json.hpp"
#include "proto/muster/rendezvous.grpc.pb.h"
#include "trainer/group/grpc_server.h"

namespace muster::group {

using Clock = std::chrono::steady_clock;

namespace {
constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::milliseconds kShutdown{1000};
}  // namespace

struct RendezvousServer::Impl {
  class Peer;
  class Service : public Rendezvous::CallbackService {
   public:
    explicit Service(Impl& impl) : impl_(impl) {}
    grpc::ServerBidiReactor<PeerMessage, GroupMessage>* Attend(
        grpc::CallbackServerContext* context) override;

   private:
    Impl& impl_;
  };

  Impl(const std::string& address, const Identity& identity, PeerRegistry::Expected expected,
       std::chrono::milliseconds time_to_greet)
      : greeting(time_to_greet),
        registry(std::move(expected)),
        service(*this),
        server(address, service, identity) {}

  void send_to_all() MUSTER_REQUIRES(mutex);
  void close_replaced() MUSTER_REQUIRES(mutex);
  bool anyone_writes() const MUSTER_REQUIRES(mutex);
  void tick();

  const std::chrono::milliseconds greeting;
  mutable Mutex mutex;
  ConditionVariable changed;
  uint64_t revision MUSTER_GUARDED_BY(mutex) = 0;
  uint64_t seen MUSTER_GUARDED_BY(mutex) = 0;
  bool closing MUSTER_GUARDED_BY(mutex) = false;
  PeerRegistry registry MUSTER_GUARDED_BY(mutex);
  GroupView view MUSTER_GUARDED_BY(mutex);
  std::map<uint64_t, Peer*> peers MUSTER_GUARDED_BY(mutex);
  uint64_t next_connection MUSTER_GUARDED_BY(mutex) = 1;
  // The incarnation of the peer that was put off last.
  uint64_t put_off MUSTER_GUARDED_BY(mutex) = 0;
  Service service;
  GrpcServer server;
  std::thread ticker;
};

// One stream. gRPC does not delete it; OnDone does.
class RendezvousServer::Impl::Peer : public grpc::ServerBidiReactor<PeerMessage, GroupMessage> {
 public:
  Peer(Impl& impl, grpc::CallbackServerContext* context) : impl_(impl), context_(context) {
    const MutexLock lock(impl_.mutex);
    id_ = impl_.next_connection++;
    impl_.peers[id_] = this;
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    const MutexLock lock(impl_.mutex);
    if (!ok) return leave();
    const auto now = Clock::now();
    if (!admitted_) {
      const Hello& hello = incoming_.hello();
      if (const std::string why = impl_.registry.must_wait(hello); !why.empty())
        return put_off(why);
      const std::string objection = impl_.registry.admit(id_, hello, now);
      if (!objection.empty()) return reject(objection);
      admitted_ = true;
      impl_.server.welcome(context_->peer());
      const std::string name = hello.role() + " " + std::to_string(hello.index());
      log::info(name + " joined");
      if (const std::string text = impl_.registry.other_bits(hello); !text.empty())
        log::warning(name + ": " + text + ": results will not be the same to the bit");
      impl_.close_replaced();
    }
    if (!impl_.registry.heard(id_, incoming_, now)) {
      if (const PeerRegistry::Peer* peer = impl_.registry.find(id_))
        log::warning(peer->hello.role() + " " + std::to_string(peer->hello.index()) +
                     " says a state that cannot be, in " +
                     std::to_string(incoming_.ByteSizeLong()) + " bytes: it may not attend");
      return leave();
    }
    note_change();
    send();
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(impl_.mutex);
    writing_ = false;
    if (!ok || dismissed_) return leave();
    if (std::exchange(again_, false)) send();
    if (impl_.closing) impl_.changed.notify_all();
  }

  void OnDone() override {
    {
      const MutexLock lock(impl_.mutex);
      note_loss();
      impl_.registry.gone(id_);
      impl_.peers.erase(id_);
      note_change();
    }
    delete this;
  }

  // Impl calls this before the functions below: Impl is impl_, and holds its mutex.
  void assert_locked() const MUSTER_ASSERTS(impl_.mutex) {}
  void send() MUSTER_REQUIRES(impl_.mutex) {
    if (finished_ || dismissed_ || !admitted_) return;
    if (writing_) {
      again_ = true;
      return;
    }
    *outgoing_.mutable_view() = impl_.view;
    writing_ = true;
    StartWrite(&outgoing_);
  }

  bool is_writing() const MUSTER_REQUIRES(impl_.mutex) { return writing_ && !finished_; }
  void cancel() { context_->TryCancel(); }
  // Whether the peer has taken too long to identify itself, or to read that the stream ends.
  bool is_overdue(Clock::time_point now) const MUSTER_REQUIRES(impl_.mutex) {
    return (!admitted_ || finished_) && now - since_ > impl_.greeting;
  }

  void leave() MUSTER_REQUIRES(impl_.mutex) {
    if (std::exchange(finished_, true)) return;
    note_loss();
    impl_.registry.gone(id_);
    note_change();
    since_ = Clock::now();
    Finish(grpc::Status::OK);
  }

 private:
  void reject(const std::string& long_objection) MUSTER_REQUIRES(impl_.mutex) {
    const std::string objection = shorten(long_objection, kMostTold);
    log::warning("a peer may not join (" + context_->peer() + "): " + objection,
                 {{"peer", context_->peer()}});
    outgoing_.set_rejected(objection);
    dismiss();
  }
  // The peer asks again and again; only its first request is logged.
  void put_off(const std::string& why) MUSTER_REQUIRES(impl_.mutex) {
    if (std::exchange(impl_.put_off, incoming_.hello().incarnation()) !=
        incoming_.hello().incarnation())
      log::warning("a peer has to wait (" + context_->peer() + "): " + why,
                   {{"peer", context_->peer()}});
    outgoing_.set_put_off(why);
    dismiss();
  }
  void dismiss() MUSTER_REQUIRES(impl_.mutex) {
    dismissed_ = writing_ = true;
    since_ = Clock::now();
    StartWrite(&outgoing_);
  }
  void note_loss() MUSTER_REQUIRES(impl_.mutex) {
    const PeerRegistry::Peer* peer = impl_.registry.find(id_);
    if (peer && !impl_.closing)
      log::info(peer->hello.role() + " " + std::to_string(peer->hello.index()) + " left");
  }
  void note_change() MUSTER_REQUIRES(impl_.mutex) {
    ++impl_.revision;
    impl_.changed.notify_all();
  }

  Impl& impl_;
  grpc::CallbackServerContext* context_;
  // The time at which the stream came, or at which we ended it.
  Clock::time_point since_ MUSTER_GUARDED_BY(impl_.mutex) = Clock::now();
  uint64_t id_ MUSTER_GUARDED_BY(impl_.mutex) = 0;
  PeerMessage incoming_ MUSTER_GUARDED_BY(impl_.mutex);
  GroupMessage outgoing_ MUSTER_GUARDED_BY(impl_.mutex);
  bool admitted_ MUSTER_GUARDED_BY(impl_.mutex) = false;
  bool writing_ MUSTER_GUARDED_BY(impl_.mutex) = false;
  bool again_ MUSTER_GUARDED_BY(impl_.mutex) = false;
  bool dismissed_ MUSTER_GUARDED_BY(impl_.mutex) = false;
  bool finished_ MUSTER_GUARDED_BY(impl_.mutex) = false;
};

grpc::ServerBidiReactor<PeerMessage, GroupMessage>* RendezvousServer::Impl::Service::Attend(
    grpc::CallbackServerContext* context) {
  return new Peer(impl_, context);
}

void RendezvousServer::Impl::send_to_all() {
  for (auto& [id, peer] : peers) {
    peer->assert_locked();
    peer->send();
  }
}

bool RendezvousServer::Impl::anyone_writes() const {
  for (const auto& [id, peer] : peers) {
    peer->assert_locked();
    if (peer->is_writing()) return true;
  }
  return false;
}

void RendezvousServer::Impl::close_replaced() {
  for (const uint64_t id : registry.take_replaced())
    if (const auto found = peers.find(id); found != peers.end()) found->second->cancel();
}

void RendezvousServer::Impl::tick() {
  MutexLock lock(mutex);
  auto heartbeat = Clock::now();
  while (!closing) {
    changed.wait_for(lock, kTick, [&]() MUSTER_REQUIRES(mutex) { return closing; });
    for (const uint64_t id : registry.overdue(Clock::now()))
      if (const auto found = peers.find(id); found != peers.end()) found->second->cancel();
    for (const auto& [id, peer] : peers) {
      peer->assert_locked();
      if (peer->is_overdue(Clock::now())) peer->cancel();
    }
    if (Clock::now() - heartbeat < PeerRegistry::kHeartbeat) continue;
    heartbeat = Clock::now();
    send_to_all();
  }
}

RendezvousServer::RendezvousServer(const std::string& address, const Identity& identity,
                                   PeerRegistry::Expected expected,
                                   std::chrono::milliseconds greeting)
    : impl_(std::make_unique<Impl>(address, identity, std::move(expected), greeting)) {
  impl_->server.start();
  impl_->ticker = std::thread([this] { impl_->tick(); });
}

RendezvousServer::~RendezvousServer() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->closing = true;
    impl_->changed.notify_all();
  }
  impl_->ticker.join();
  {
    // The last messages are still sent. The server does not wait for the peers, which may take long
    // to leave.
    MutexLock lock(impl_->mutex);
    impl_->changed.wait_for(
        lock, kShutdown, [&]() MUSTER_REQUIRES(impl_->mutex) { return !impl_->anyone_writes(); });
    for (auto& [id, peer] : impl_->peers) peer->leave();
  }
  impl_->server.shut_down(kShutdown);
  MutexLock lock(impl_->mutex);
  impl_->changed.wait(lock, [&]() MUSTER_REQUIRES(impl_->mutex) { return impl_->peers.empty(); });
}

void RendezvousServer::inspect(const std::function<void(const PeerRegistry&)>& read) const {
  const MutexLock lock(impl_->mutex);
  read(impl_->registry);
}

void RendezvousServer::wait_for_change(std::chrono::milliseconds wait) {
  MutexLock lock(impl_->mutex);
  impl_->changed.wait_for(
      lock, wait, [&]() MUSTER_REQUIRES(impl_->mutex) { return impl_->revision != impl_->seen; });
  impl_->seen = impl_->revision;
}

void RendezvousServer::opened(uint64_t generation) {
  const MutexLock lock(impl_->mutex);
  impl_->registry.opened(generation);
}

void RendezvousServer::update(const std::function<void(GroupView&)>& change) {
  const MutexLock lock(impl_->mutex);
  change(impl_->view);
  impl_->send_to_all();
  ++impl_->revision;
  impl_->changed.notify_all();
}

GroupView RendezvousServer::view() const {
  const MutexLock lock(impl_->mutex);
  return impl_->view;
}

std::shared_ptr<grpc::Channel> RendezvousServer::local_channel() {
  return impl_->server.local_channel();
}

}  // namespace muster::group
