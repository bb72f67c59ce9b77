#include "trainer/ps/serving/server.h"

#include <functional>
#include <queue>
#include <stop_token>
#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "common/threads/mutex.h"
#include "common/threads/pause.h"
#include "proto/muster/parameter_server.grpc.pb.h"
#include "trainer/group/grpc_server.h"
#include "trainer/ps/serving/exchange_streams.h"
#include "trainer/ps/serving/follow_streams.h"

namespace muster::ps {

namespace {

constexpr std::chrono::milliseconds kShutdown{1000};

using ControlService = ParameterServer::WithCallbackMethod_Open<
    ParameterServer::WithCallbackMethod_Snapshot<ParameterServer::WithCallbackMethod_Write<
        ParameterServer::WithCallbackMethod_Hurry<ParameterServer::WithRawCallbackMethod_Exchange<
            ParameterServer::WithRawCallbackMethod_Follow<ParameterServer::Service>>>>>>;

// Rank 0 turns the status code back into the same kind of error.
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
  } catch (const std::exception& error) {  // for example no memory
    return {grpc::StatusCode::UNAVAILABLE, error.what()};
  }
  return grpc::Status::OK;
}

// Runs work that may take long (reading and writing files), in order, on a thread that is not
// gRPC's.
class Worker {
 public:
  using Work = std::function<void(bool wanted)>;

  Worker() : thread_([this] { run(); }) {}
  ~Worker() {
    close();
    thread_.join();
  }
  // Cancels work that has not begun.
  void close() {
    const MutexLock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  void add(Work work) {
    {
      const MutexLock lock(mutex_);
      if (!closing_) {
        work_.push(std::move(work));
        changed_.notify_all();
        return;
      }
    }
    work(false);
  }

 private:
  void run() {
    MutexLock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return closing_ || !work_.empty(); });
      if (work_.empty()) return;
      const Work work = std::move(work_.front());
      work_.pop();
      const bool wanted = !closing_;
      lock.unlock();
      work(wanted);
      lock.lock();
    }
  }
  Mutex mutex_;
  ConditionVariable changed_;
  std::queue<Work> work_ MUSTER_GUARDED_BY(mutex_);
  bool closing_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

struct Server::Impl : ControlService {
  Impl(const std::string& address, const group::Identity& identity,
       const std::vector<ShardHost*>& of_shards)
      : hosts(of_shards),
        streams(
            of_shards, [this](const std::string& peer) { server.welcome(peer); }, !identity),
        followers(
            of_shards, [this](const std::string& peer) { server.welcome(peer); }, !identity),
        server(address, *this, identity) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override {
    return streams.open(context);
  }
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Follow(
      grpc::CallbackServerContext* context) override {
    return followers.open(context);
  }
  ShardHost& host_of(uint32_t shard) {
    for (ShardHost* host : hosts)
      if (host->shard() == static_cast<int>(shard)) return *host;
    throw Invalid("shard " + std::to_string(shard) + " is not at home here", kProtocol);
  }
  grpc::ServerUnaryReactor* Open(grpc::CallbackServerContext* context, const OpenRequest* request,
                                 OpenReply* reply) override {
    return answer(context, &opening, [this, request, reply] {
      *reply->mutable_state() = host_of(request->shard()).open(*request);
      log::info("opened generation " + std::to_string(request->generation()) +
                (request->follow() ? " as the second copy of shard " : " of shard ") +
                std::to_string(request->shard()) + " at step " +
                std::to_string(reply->state().step()));
    });
  }
  // Answers at once, even while an earlier snapshot is written: rank 0's steps wait for it.
  grpc::ServerUnaryReactor* Snapshot(grpc::CallbackServerContext* context,
                                     const SnapshotRequest* request,
                                     SnapshotReply* reply) override {
    return answer(context, nullptr, [this, request, reply] {
      *reply = host_of(request->shard()).snapshot(*request);
    });
  }
  grpc::ServerUnaryReactor* Write(grpc::CallbackServerContext* context, const WriteRequest* request,
                                  WriteReply* reply) override {
    return answer(context, &writing,
                  [this, request, reply] { *reply = host_of(request->shard()).write(*request); });
  }
  grpc::ServerUnaryReactor* Hurry(grpc::CallbackServerContext* context, const HurryRequest* request,
                                  HurryReply*) override {
    return answer(context, nullptr, [this, request] { host_of(request->shard()).hurry(*request); });
  }

  // Answers with the status of `work`, which runs on `worker`, if not null.
  template <class Work>
  grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext* context, Worker* worker,
                                   Work work) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const auto finish = [reactor, context, work](bool wanted) {
      if (wanted && !context->IsCancelled()) return reactor->Finish(status_of(work));
      reactor->Finish({grpc::StatusCode::UNAVAILABLE, "nobody waits for it any more"});
    };
    const auto uid = context->client_metadata().find(kJobUidKey);
    if (uid == context->client_metadata().end() ||
        !hosts.front()->is_of({uid->second.data(), uid->second.size()})) {
      reactor->Finish({grpc::StatusCode::PERMISSION_DENIED, "the call is not of this job"});
      return reactor;
    }
    server.welcome(context->peer());
    if (worker)
      worker->add(finish);
    else
      finish(true);
    return reactor;
  }

  // Ends streams that send no greeting in time.
  void watch(const std::stop_token& stop, std::chrono::milliseconds greeting) {
    while (pause_for(greeting / 4, stop)) {
      const auto opened_before = std::chrono::steady_clock::now() - greeting;
      streams.close_mute(opened_before);
      followers.close_mute(opened_before);
    }
  }

  const std::vector<ShardHost*> hosts;
  ExchangeStreams streams;
  FollowStreams followers;
  Worker opening;  // separate, so that opening does not wait for another generation's writes
  Worker writing;
  group::GrpcServer server;
  std::jthread watching;
};

Server::Server(const std::string& address, const group::Identity& identity,
               const std::vector<ShardHost*>& hosts, std::chrono::milliseconds greeting)
    : impl_(std::make_unique<Impl>(address, identity, hosts)) {
  impl_->server.start();
  impl_->watching =
      std::jthread([this, greeting](const std::stop_token& stop) { impl_->watch(stop, greeting); });
}

Server::~Server() {
  impl_->watching.request_stop();
  impl_->opening.close();
  impl_->writing.close();
  for (ShardHost* host : impl_->hosts) host->hurry({});
  impl_->streams.close();
  impl_->followers.close();
  impl_->server.shut_down(kShutdown);
}

}  // namespace muster::ps
