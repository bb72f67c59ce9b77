#include "trainer/group/pollers.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>

#include "common/threads/mutex.h"

namespace muster::group {

// Holds one thread in the callback of a call that fails at once, since it has no credentials.
class Pollers::Held {
 public:
  Held() {
    stub_.UnaryCall(&context_, "/muster.Nobody/Nothing", {}, &request_, &reply_,
                    [this](const grpc::Status&) { hold(); });
  }
  ~Held() {
    MutexLock lock(mutex_);
    released_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return gone_; });
  }

 private:
  void hold() {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return released_; });
    gone_ = true;
    changed_.notify_all();
  }

  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_{
      grpc::CreateChannel("", nullptr)};
  grpc::ClientContext context_;
  const grpc::ByteBuffer request_{nullptr, 0};
  grpc::ByteBuffer reply_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool released_ MUSTER_GUARDED_BY(mutex_) = false;
  bool gone_ MUSTER_GUARDED_BY(mutex_) = false;
};

Pollers::Pollers(int most) {
  const auto all = std::clamp<long>(::sysconf(_SC_NPROCESSORS_CONF) / 2, 2, 16);  // gRPC's rule
  for (long i = std::max(1, most); i < all; ++i) held_.push_back(std::make_unique<Held>());
}

Pollers::~Pollers() = default;

}  // namespace muster::group
