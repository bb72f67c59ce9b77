#include "trainer/group/pollers.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <list>
#include <mutex>
#include <set>
#include <thread>

namespace muster::group {
namespace {

// Calls that fail at once, and the threads that their callbacks came in.
class Calls {
 public:
  ~Calls() { wait_for_returns(); }

  // Its callback waits until so many have been entered.
  void make(int until_entered = 1) {
    {
      // gRPC orders a call and its callback, but ThreadSanitizer cannot see that: it sees mutexes.
      const std::scoped_lock lock(mutex_);
      ++made_;
    }
    Call& call = calls_.emplace_back();
    call.stub.UnaryCall(&call.context, "/muster.Nobody/Nothing", {}, &call.request, &call.reply,
                        [this, until_entered](const grpc::Status&) { call_back(until_entered); });
  }
  void wait_for_returns() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return returned_ == made_; });
  }
  const std::set<std::thread::id>& threads() const { return threads_; }

 private:
  struct Call {
    grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub{
        grpc::CreateChannel("", nullptr)};
    grpc::ClientContext context;
    const grpc::ByteBuffer request{nullptr, 0};
    grpc::ByteBuffer reply;
  };

  void call_back(int until_entered) {
    std::unique_lock lock(mutex_);
    threads_.insert(std::this_thread::get_id());
    ++entered_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return entered_ >= until_entered; });
    ++returned_;
    changed_.notify_all();
  }

  std::list<Call> calls_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::thread::id> threads_;
  int made_ = 0;
  int entered_ = 0;
  int returned_ = 0;
};

TEST(PollersTest, OneThreadMakesAllCallbacks) {
  const Pollers pollers(1);
  Calls calls;
  for (int i = 0; i < 200; ++i) calls.make();
  calls.wait_for_returns();
  EXPECT_EQ(calls.threads().size(), 1u);
}

TEST(PollersTest, OneIsLeftAtLeast) {
  const Pollers pollers(0);
  Calls calls;
  calls.make();
  calls.wait_for_returns();
  EXPECT_EQ(calls.threads().size(), 1u);
}

TEST(PollersTest, TheOthersGoBackToTheirWork) {
  { const Pollers pollers(1); }
  Calls calls;
  calls.make(2);
  calls.make(2);
  calls.wait_for_returns();
  EXPECT_EQ(calls.threads().size(), 2u);
}

}  // namespace
}  // namespace muster::group
