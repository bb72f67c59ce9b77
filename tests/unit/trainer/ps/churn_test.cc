// Members that come and go by the thousand, and one that never reads.

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "proto/muster/parameter_server.grpc.pb.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "tests/unit/trainer/ps/shards.h"
#include "trainer/group/grpc_server.h"
#include "trainer/ps/member/shm_link.h"
#include "trainer/ps/serving/exchange_streams.h"
#include "trainer/ps/serving/follow_streams.h"

namespace muster::ps {
namespace {

namespace fs = std::filesystem;

struct Usage {
  size_t descriptors = 0;
  size_t threads = 0;
  size_t bytes = 0;  // resident
};

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

Usage usage() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return {entries("/proc/self/fd"), entries("/proc/self/task"), pages * 4096};
}

Exchange::Outcome come_and_go(const Shards& shards, bool shared_memory) {
  std::unique_ptr<MemberMemory> memory;
  if (shared_memory)
    memory = std::make_unique<MemberMemory>(SegmentShape{shards.layout().size(), 1}, 0);
  Exchange exchange(
      shards.layout().partition(1), 0, SyncPolicy::sync,
      [&](const LinkEnd& end) -> std::unique_ptr<ShardLink> {
        LinkHello hello{"uid", "1", shards.layout().fingerprint(), {}, shards.wire()};
        if (end.memory) hello.shared_memory = end.memory->offer();
        auto stream = make_grpc_link(
            group::make_channel(shards.address(0), group::identity_of_tests()), hello, end.bell);
        if (!end.memory) return stream;
        return make_shm_link(std::move(stream), end, "ps");
      },
      memory.get());
  std::vector<float> parameters(shards.layout().size());
  exchange.connect(1);
  return exchange.align(parameters, {{}, [] { return false; }}).outcome;
}

// A connection may take too long on a machine without a free CPU: the member then tries again.
void surely_come_and_go(const Shards& shards, bool shared_memory) {
  auto outcome = Exchange::Outcome::broken;
  for (int i = 0; i < 5 && outcome == Exchange::Outcome::broken; ++i)
    outcome = come_and_go(shards, shared_memory);
  ASSERT_EQ(outcome, Exchange::Outcome::ok);
}

// Returns the usage once everything that has ended is gone.
Usage settled(const Usage& expected) {
  Usage now = usage();
  for (int i = 0;
       i < 200 && (now.descriptors > expected.descriptors || now.threads > expected.threads); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    now = usage();
  }
  return now;
}

class ChurnTest : public testing::TestWithParam<bool> {};

TEST_P(ChurnTest, AThousandMembersLeaveNothingBehind) {
  testing::internal::CaptureStdout();  // each logs how it exchanges
  Shards shards(spec::SyncPolicy::sync, 1, 2);
  for (int i = 0; i < 50; ++i) surely_come_and_go(shards, GetParam());
  const Usage before = settled(usage());
  for (int i = 0; i < 1000; ++i) surely_come_and_go(shards, GetParam());
  const Usage after = settled(before);
  testing::internal::GetCapturedStdout();
  // gRPC has a few threads and pipes that come and go by themselves.
  EXPECT_LE(after.descriptors, before.descriptors + 10);
  EXPECT_LE(after.threads, before.threads + 10);
#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer keeps memory that was freed.
  EXPECT_LE(after.bytes, before.bytes + (64 << 20));
#endif
}

INSTANTIATE_TEST_SUITE_P(Ways, ChurnTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "shared_memory" : "grpc"; });

// Writes message after message and never reads the answers.
class Talker : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  using Message = std::function<grpc::ByteBuffer(int)>;  // the first is 1

  Talker(std::shared_ptr<grpc::Channel> channel, const std::string& method, Message message,
         int messages)
      : stub_(std::move(channel)), message_(std::move(message)), messages_(messages) {
    stub_.PrepareBidiStreamingCall(&context_, "/muster.ParameterServer/" + method,
                                   grpc::StubOptions(), this);
    write();
    StartCall();
  }
  ~Talker() override {
    context_.TryCancel();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
  }
  int begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  // Waits until the peer takes no more messages.
  void wait_until_it_rests() {
    for (int before = -1; before != begun() && begun() < messages_;) {
      before = begun();
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

 private:
  void write() {
    buffer_ = message_(++begun_);
    StartWrite(&buffer_);
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (ok && begun_ < messages_) write();
  }
  void OnDone(const grpc::Status&) override {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer buffer_;
  const Message message_;
  const int messages_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int begun_ = 0;
  bool done_ = false;
};

grpc::Slice slice_of(const std::vector<float>& values) {
  return {values.data(), values.size() * sizeof(float)};
}

// A shard behind a channel without buffers: a message that is not read is not written.
class LocalServer : public ParameterServer::WithRawCallbackMethod_Exchange<
                        ParameterServer::WithRawCallbackMethod_Follow<ParameterServer::Service>> {
 public:
  explicit LocalServer(ShardHost& host)
      : exchange_(
            {&host}, [this](const std::string& peer) { server_.welcome(peer); }, false),
        follow_(
            {&host}, [this](const std::string& peer) { server_.welcome(peer); }, false),
        server_(free_address(), *this, group::identity_of_tests()) {}
  ~LocalServer() override {
    exchange_.close();
    follow_.close();
    server_.shut_down(std::chrono::seconds(10));
  }
  std::shared_ptr<grpc::Channel> channel() {
    // gRPC orders the making of the server and its calls, but ThreadSanitizer cannot see that: it
    // sees the mutex that this locks.
    server_.welcome("nobody");
    return server_.local_channel();
  }

 private:
  using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;
  Reactor* Exchange(grpc::CallbackServerContext* context) override {
    return exchange_.open(context);
  }
  Reactor* Follow(grpc::CallbackServerContext* context) override { return follow_.open(context); }

  ExchangeStreams exchange_;
  FollowStreams follow_;
  group::GrpcServer server_;
};

TEST(BackpressureTest, AMemberThatDoesNotReadIsNotReadFrom) {
  Shards shards(spec::SyncPolicy::async, 1, 2);
  ASSERT_LT(shards.layout().size(), kChunkFloats);
  const std::vector<float> gradients(shards.layout().size(), 0.5f);
  constexpr int kPushes = 2000;
  const auto push = [&](int number) {
    PushHeader header;
    header.generation = 1;
    header.sequence = static_cast<uint64_t>(number);
    header.sums.rows = 1;
    header.sums.weight = static_cast<double>(header.sums.rows);
    Push message = to_message(header);
    message.mutable_hello()->set_job_uid("uid");
    message.mutable_hello()->set_version("1");
    message.mutable_hello()->set_layout_fingerprint(shards.layout().fingerprint());
    message.mutable_hello()->set_wire("float32");
    return encode(message, slice_of(gradients));
  };
  LocalServer server(shards.host(0));
  Talker talker(server.channel(), "Exchange", push, kPushes);
  talker.wait_until_it_rests();
  EXPECT_LT(talker.begun(), kPushes);
  EXPECT_LE(shards.host(0).counts().pushes, 20u);
}

TEST(BackpressureTest, APsThatDoesNotReadItsAcknowledgementsIsNotReadFrom) {
  Shards shards(spec::SyncPolicy::sync, 1, 1);
  LocalServer server(shards.host(0));
  const std::vector<float> state(shards.layout().size() * 3, 0.5f);  // parameters and Adam's slots
  constexpr int kMessages = 500;
  const auto forward = [&](int number) {
    Forward message;
    message.set_coupling(1);
    if (number == 1) {
      OpenRequest& opening = *message.mutable_hello()->mutable_opening();
      opening = shards.opening(0, 1);
      opening.set_generation(2);
      return encode(message, grpc::Slice());
    }
    message.mutable_state();
    message.set_floats(state.size());
    return encode(message, slice_of(state));
  };
  testing::internal::CaptureStdout();  // each state taken over is logged
  Talker talker(server.channel(), "Follow", forward, kMessages);
  talker.wait_until_it_rests();
  const std::string log = testing::internal::GetCapturedStdout();
  EXPECT_LT(talker.begun(), 100);
  EXPECT_THAT(log, testing::HasSubstr("takes over a copy of shard 0"));
}

TEST(BackpressureTest, APsThatIsRefusedIsNotHeardAnyMore) {
  const Shards shards(spec::SyncPolicy::sync, 1, 1);
  const auto stub =
      ParameterServer::NewStub(group::make_channel(shards.address(0), group::identity_of_tests()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stream = stub->Follow(&context);
  Forward greeting;
  greeting.mutable_hello()->set_incarnation(7);  // another process was meant
  *greeting.mutable_hello()->mutable_opening() = shards.opening(0, 1);
  stream->Write(greeting);
  Acknowledgement reply;
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_EQ(reply.status(), Acknowledgement::SUPERSEDED);
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace muster::ps
