#include "trainer/ps/control.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <mutex>
#include <set>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "proto/muster/parameter_server.grpc.pb.h"
#include "trainer/ps/messages.h"

namespace muster::ps {

struct Control::Impl {
  std::vector<std::unique_ptr<ParameterServer::Stub>> stubs;
  std::mutex mutex;
  bool cancelled = false;
  std::string job_uid;
  std::set<grpc::ClientContext*> open_calls;

  // Holds contexts while their calls are under way.
  class Open {
   public:
    Open(Impl& impl, std::vector<grpc::ClientContext>& contexts)
        : impl_(impl), contexts_(contexts) {
      const std::lock_guard lock(impl_.mutex);
      if (impl_.cancelled) throw Unavailable("cancelled: we are leaving");
      for (auto& context : contexts_) impl_.open_calls.insert(&context);
    }
    ~Open() {
      const std::lock_guard lock(impl_.mutex);
      for (auto& context : contexts_) impl_.open_calls.erase(&context);
    }

   private:
    Impl& impl_;
    std::vector<grpc::ClientContext>& contexts_;
  };

  template <class Reply, class Start>
  std::vector<Reply> call_all(std::chrono::milliseconds deadline, Start start) {
    return call<Reply>(0, stubs.size(), deadline, start);
  }
  template <class Reply, class Start>
  std::vector<Reply> call(size_t first, size_t end, std::chrono::milliseconds deadline,
                          Start start);
};

void Control::cancel() {
  const std::lock_guard lock(impl_->mutex);
  impl_->cancelled = true;
  for (grpc::ClientContext* context : impl_->open_calls) context->TryCancel();
}

Control::Control(const std::vector<std::shared_ptr<grpc::Channel>>& channels, std::string job_uid)
    : impl_(std::make_unique<Impl>()) {
  impl_->job_uid = std::move(job_uid);
  for (auto& channel : channels) impl_->stubs.push_back(ParameterServer::NewStub(channel));
}

Control::~Control() = default;

namespace {

[[noreturn]] void throw_as(size_t shard, const grpc::Status& status) {
  const std::string text = "ps " + std::to_string(shard) + ": " + status.error_message();
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

// Calls the shards from `first` to before `end` at once and waits for all.
template <class Reply, class Start>
std::vector<Reply> Control::Impl::call(size_t first, size_t end, std::chrono::milliseconds deadline,
                                       Start start) {
  const size_t shards = end - first;
  std::vector<grpc::ClientContext> contexts(shards);
  const Open open(*this, contexts);
  std::vector<Reply> replies(shards);
  std::mutex mutex;
  std::vector<grpc::Status> statuses;
  size_t left = 0;
  {
    const std::lock_guard lock(mutex);  // ThreadSanitizer does not see what gRPC orders
    statuses.resize(shards);
    left = shards;
  }
  std::condition_variable changed;
  for (size_t i = 0; i < shards; ++i) {
    contexts[i].AddMetadata(kJobUidKey, job_uid);
    contexts[i].set_deadline(std::chrono::system_clock::now() + deadline);
    start(first + i, &contexts[i], &replies[i], [&, i](grpc::Status status) {
      const std::lock_guard lock(mutex);
      statuses[i] = std::move(status);
      --left;
      changed.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return left == 0; });
  for (size_t i = 0; i < shards; ++i)
    if (!statuses[i].ok()) throw_as(first + i, statuses[i]);
  return replies;
}

std::vector<OpenReply> Control::open(const OpenRequest& request,
                                     std::chrono::milliseconds deadline) {
  return impl_->call_all<OpenReply>(
      deadline, [&](size_t shard, auto* context, auto* reply, auto done) {
        impl_->stubs[shard]->async()->Open(context, &request, reply, done);
      });
}

std::vector<SnapshotReply> Control::snapshot(uint64_t generation, bool shard_0_first,
                                             std::chrono::milliseconds deadline) {
  SnapshotRequest request;
  request.set_generation(generation);
  const auto start = [&](size_t shard, auto* context, auto* reply, auto done) {
    impl_->stubs[shard]->async()->Snapshot(context, &request, reply, done);
  };
  if (!shard_0_first) return impl_->call_all<SnapshotReply>(deadline, start);
  auto replies = impl_->call<SnapshotReply>(0, 1, deadline, start);
  for (auto& reply : impl_->call<SnapshotReply>(1, impl_->stubs.size(), deadline, start))
    replies.push_back(std::move(reply));
  return replies;
}

std::vector<WriteReply> Control::write(const WriteRequest& request,
                                       const std::vector<uint64_t>& steps,
                                       std::chrono::milliseconds deadline) {
  std::vector<WriteRequest> requests(impl_->stubs.size(), request);
  for (size_t shard = 0; shard < requests.size(); ++shard) requests[shard].set_step(steps[shard]);
  return impl_->call_all<WriteReply>(
      deadline, [&](size_t shard, auto* context, auto* reply, auto done) {
        impl_->stubs[shard]->async()->Write(context, &requests[shard], reply, done);
      });
}

}  // namespace muster::ps
