#include "trainer/ps/server.h"

#include <functional>
#include <queue>
#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "proto/muster/parameter_server.grpc.pb.h"
#include "trainer/group/grpc_server.h"
#include "trainer/ps/exchange_streams.h"

namespace muster::ps {

namespace {

constexpr std::chrono::milliseconds kShutdown{1000};

using ControlService = ParameterServer::WithCallbackMethod_Open<
    ParameterServer::WithCallbackMethod_Snapshot<ParameterServer::WithCallbackMethod_Write<
        ParameterServer::WithRawCallbackMethod_Exchange<ParameterServer::Service>>>>;

// The caller turns the code back into the same kind of error.
grpc::Status status_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const WriteError& error) {
    return {error.lasting() ? grpc::StatusCode::FAILED_PRECONDITION
                            : grpc::StatusCode::RESOURCE_EXHAUSTED,
            error.what()};
  } catch (const Unavailable& error) {
    return {grpc::StatusCode::UNAVAILABLE, error.what()};
  } catch (const Invalid& error) {
    if (error.exit_code() == kDiverged) return {grpc::StatusCode::DATA_LOSS, error.what()};
    if (error.exit_code() == kProtocol) return {grpc::StatusCode::PERMISSION_DENIED, error.what()};
    return {grpc::StatusCode::INVALID_ARGUMENT, error.what()};
  }
  return grpc::Status::OK;
}

// Runs what may take long (reading and writing files) away from gRPC's threads, in order.
class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push(std::move(work));
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return closing_ || !work_.empty(); });
      if (work_.empty()) return;
      const auto work = std::move(work_.front());
      work_.pop();
      lock.unlock();
      work();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> work_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace

struct Server::Impl : ControlService {
  explicit Impl(ShardHost& host) : host(host), streams(host) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override {
    return streams.open(context);
  }
  grpc::ServerUnaryReactor* Open(grpc::CallbackServerContext* context, const OpenRequest* request,
                                 OpenReply* reply) override {
    return answer(context, &opening, [this, request, reply] {
      *reply->mutable_state() = host.open(*request);
      log::info("opened generation " + std::to_string(request->generation()) + " at step " +
                std::to_string(reply->state().step()));
    });
  }
  // At once, although an earlier one may be being written: rank 0's steps wait for it.
  grpc::ServerUnaryReactor* Snapshot(grpc::CallbackServerContext* context,
                                     const SnapshotRequest* request,
                                     SnapshotReply* reply) override {
    return answer(context, nullptr, [this, request, reply] { *reply = host.snapshot(*request); });
  }
  grpc::ServerUnaryReactor* Write(grpc::CallbackServerContext* context, const WriteRequest* request,
                                  WriteReply* reply) override {
    return answer(context, &writing, [this, request, reply] { *reply = host.write(*request); });
  }

  // By what `work` comes to, on `worker`, if any.
  template <class Work>
  grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext* context, Worker* worker,
                                   Work work) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const auto finish = [reactor, work] { reactor->Finish(status_of(work)); };
    const auto uid = context->client_metadata().find(kJobUidKey);
    if (uid == context->client_metadata().end() ||
        !host.is_of({uid->second.data(), uid->second.size()}))
      reactor->Finish({grpc::StatusCode::PERMISSION_DENIED, "the call is not of this job"});
    else if (worker)
      worker->add(finish);
    else
      finish();
    return reactor;
  }

  ShardHost& host;
  ExchangeStreams streams;
  Worker opening;  // not behind what is being written for another generation
  Worker writing;
  std::unique_ptr<grpc::Server> server;
};

Server::Server(const std::string& address, ShardHost& host) : impl_(std::make_unique<Impl>(host)) {
  impl_->server = group::start_server(address, *impl_);
}

Server::~Server() {
  impl_->streams.close();
  impl_->server->Shutdown(std::chrono::system_clock::now() + kShutdown);
}

}  // namespace muster::ps
