#include "trainer/ps/group/control.h"

#include <grpcpp/grpcpp.h>

#include <numeric>
#include <set>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "common/threads/mutex.h"
#include "proto/muster/parameter_server.grpc.pb.h"
#include "trainer/group/grpc_server.h"
#include "trainer/ps/shard/messages.h"

namespace muster::ps {

struct Control::Impl {
  using Stub = std::shared_ptr<ParameterServer::Stub>;  // calls outlive a change of address

  group::Identity identity;  // this and the next are set by the constructor
  std::string job_uid;
  Mutex mutex;
  std::vector<std::string> addresses MUSTER_GUARDED_BY(mutex);
  std::vector<Stub> stubs MUSTER_GUARDED_BY(mutex);
  bool cancelled MUSTER_GUARDED_BY(mutex) = false;
  std::vector<int> serving MUSTER_GUARDED_BY(mutex);
  std::set<grpc::ClientContext*> open_calls MUSTER_GUARDED_BY(mutex);

  // Keeps the contexts of the calls under way.
  class Open {
   public:
    Open(Impl& impl, std::vector<grpc::ClientContext>& contexts)
        : impl_(impl), contexts_(contexts) {
      const MutexLock lock(impl_.mutex);
      if (impl_.cancelled) throw Unavailable("cancelled: we are leaving");
      for (auto& context : contexts_) impl_.open_calls.insert(&context);
    }
    ~Open() {
      const MutexLock lock(impl_.mutex);
      for (auto& context : contexts_) impl_.open_calls.erase(&context);
    }

   private:
    Impl& impl_;
    std::vector<grpc::ClientContext>& contexts_;
  };

  Stub stub(int ps) {
    const MutexLock lock(mutex);
    return stubs.at(static_cast<size_t>(ps));
  }
  // Returns the ps for each shard's call, in the shards' order.
  std::vector<int> route_of_shards() {
    const MutexLock lock(mutex);
    return serving;
  }
  // `start` begins the nth call.
  template <class Reply, class Start>
  std::vector<Reply> call(const std::vector<int>& to, std::chrono::milliseconds deadline,
                          Start start);
};

void Control::locate(const std::vector<std::string>& addresses) {
  const MutexLock lock(impl_->mutex);
  impl_->addresses.resize(addresses.size());
  impl_->stubs.resize(addresses.size());
  for (size_t ps = 0; ps < addresses.size(); ++ps) {
    if (impl_->stubs[ps] && impl_->addresses[ps] == addresses[ps]) continue;
    impl_->addresses[ps] = addresses[ps];
    impl_->stubs[ps] =
        ParameterServer::NewStub(group::make_channel(addresses[ps], impl_->identity));
  }
}

void Control::route(std::vector<int> serving) {
  const MutexLock lock(impl_->mutex);
  impl_->serving = std::move(serving);
}

void Control::cancel() {
  const MutexLock lock(impl_->mutex);
  impl_->cancelled = true;
  for (grpc::ClientContext* context : impl_->open_calls) context->TryCancel();
}

Control::Control(const std::vector<std::string>& addresses, const group::Identity& identity,
                 std::string job_uid)
    : impl_(std::make_unique<Impl>()) {
  impl_->identity = identity;
  impl_->job_uid = std::move(job_uid);
  impl_->serving.resize(addresses.size());
  std::iota(impl_->serving.begin(), impl_->serving.end(), 0);
  locate(addresses);
}

Control::~Control() = default;

namespace {

// The answers to calls that were made at once.
struct Answers {
  Mutex mutex;
  ConditionVariable changed;
  std::vector<grpc::Status> statuses MUSTER_GUARDED_BY(mutex);
  size_t left MUSTER_GUARDED_BY(mutex) = 0;
};

[[noreturn]] void throw_as(int ps, const grpc::Status& status) {
  const std::string text = "ps " + std::to_string(ps) + ": " + status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      throw WriteError(text);
    case grpc::StatusCode::FAILED_PRECONDITION:
      throw WriteError(text, /*lasting=*/true);
    case grpc::StatusCode::DATA_LOSS:
      throw Invalid(text, kDiverged);
    case grpc::StatusCode::PERMISSION_DENIED:
      throw Invalid(text, kProtocol);
    case grpc::StatusCode::INVALID_ARGUMENT:
      throw Invalid(text);
    default:
      throw Unavailable(text);
  }
}

}  // namespace

// Makes all the calls at once and waits for all.
template <class Reply, class Start>
std::vector<Reply> Control::Impl::call(const std::vector<int>& to,
                                       std::chrono::milliseconds deadline, Start start) {
  const size_t calls = to.size();
  std::vector<grpc::ClientContext> contexts(calls);
  const Open open(*this, contexts);
  std::vector<Reply> replies(calls);
  Answers answers;
  {
    const MutexLock lock(answers.mutex);  // ThreadSanitizer does not see what gRPC orders
    answers.statuses.resize(calls);
    answers.left = calls;
  }
  for (size_t i = 0; i < calls; ++i) {
    contexts[i].AddMetadata(kJobUidKey, job_uid);
    contexts[i].set_deadline(std::chrono::system_clock::now() + deadline);
    start(i, &contexts[i], &replies[i], [&, i](grpc::Status status) {
      const MutexLock lock(answers.mutex);
      answers.statuses[i] = std::move(status);
      --answers.left;
      answers.changed.notify_all();
    });
  }
  MutexLock lock(answers.mutex);
  answers.changed.wait(lock, [&]() MUSTER_REQUIRES(answers.mutex) { return answers.left == 0; });
  for (size_t i = 0; i < calls; ++i)
    if (!answers.statuses[i].ok()) throw_as(to[i], answers.statuses[i]);
  return replies;
}

std::vector<OpenReply> Control::open(const std::vector<PsFormation::Opening>& openings,
                                     std::chrono::milliseconds deadline) {
  std::vector<int> to;
  for (const PsFormation::Opening& opening : openings) to.push_back(opening.ps);
  return impl_->call<OpenReply>(to, deadline, [&](size_t i, auto* context, auto* reply, auto done) {
    impl_->stub(to[i])->async()->Open(context, &openings[i].request, reply, done);
  });
}

std::vector<SnapshotReply> Control::snapshot(uint64_t generation, bool shard_0_first,
                                             std::chrono::milliseconds deadline) {
  const std::vector<int> serving = impl_->route_of_shards();
  std::vector<SnapshotRequest> requests(serving.size());
  for (size_t shard = 0; shard < requests.size(); ++shard) {
    requests[shard].set_generation(generation);
    requests[shard].set_shard(static_cast<uint32_t>(shard));
  }
  const auto call = [&](size_t first, size_t end) {
    const std::vector<int> to(serving.begin() + static_cast<ptrdiff_t>(first),
                              serving.begin() + static_cast<ptrdiff_t>(end));
    return impl_->call<SnapshotReply>(
        to, deadline, [&](size_t i, auto* context, auto* reply, auto done) {
          impl_->stub(to[i])->async()->Snapshot(context, &requests[first + i], reply, done);
        });
  };
  if (!shard_0_first) return call(0, serving.size());
  auto replies = call(0, 1);
  for (auto& reply : call(1, serving.size())) replies.push_back(std::move(reply));
  return replies;
}

std::vector<WriteReply> Control::write(const WriteRequest& request,
                                       const std::vector<uint64_t>& steps,
                                       std::chrono::milliseconds deadline) {
  const std::vector<int> to = impl_->route_of_shards();
  std::vector<WriteRequest> requests(to.size(), request);
  for (size_t shard = 0; shard < requests.size(); ++shard) {
    requests[shard].set_step(steps[shard]);
    requests[shard].set_shard(static_cast<uint32_t>(shard));
  }
  return impl_->call<WriteReply>(
      to, deadline, [&](size_t shard, auto* context, auto* reply, auto done) {
        impl_->stub(to[shard])->async()->Write(context, &requests[shard], reply, done);
      });
}

void Control::hurry(uint64_t generation, const std::vector<uint64_t>& steps,
                    std::chrono::milliseconds deadline) {
  const std::vector<int> to = impl_->route_of_shards();
  std::vector<HurryRequest> requests(to.size());
  for (size_t shard = 0; shard < requests.size(); ++shard) {
    requests[shard].set_generation(generation);
    requests[shard].set_step(steps[shard]);
    requests[shard].set_shard(static_cast<uint32_t>(shard));
  }
  impl_->call<HurryReply>(to, deadline, [&](size_t shard, auto* context, auto* reply, auto done) {
    impl_->stub(to[shard])->async()->Hurry(context, &requests[shard], reply, done);
  });
}

}  // namespace muster::ps
