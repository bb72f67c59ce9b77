// Members that come and go by the thousand, and one that never reads.

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "tests/unit/trainer/ps/shards.h"
#include "trainer/group/grpc_server.h"
#include "trainer/ps/shm_link.h"

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
      shards.layout().partition(1), 0, Exchange::Mode::sync,
      [&](const LinkEnd& end) -> std::unique_ptr<ShardLink> {
        LinkHello hello{"uid", "1", shards.layout().fingerprint(), {}, shards.wire()};
        if (end.memory) hello.shared_memory = end.memory->offer();
        auto stream = make_grpc_link(group::make_channel(shards.address(0)), hello, end.bell);
        if (!end.memory) return stream;
        return make_shm_link(std::move(stream), end, "ps");
      },
      memory.get());
  std::vector<float> parameters(shards.layout().size());
  exchange.connect(1);
  return exchange.align(parameters, {{}, [] { return false; }}).outcome;
}

// On a machine that has no CPU for it a connection may take too long: a member tries again.
void surely_come_and_go(const Shards& shards, bool shared_memory) {
  auto outcome = Exchange::Outcome::broken;
  for (int i = 0; i < 5 && outcome == Exchange::Outcome::broken; ++i)
    outcome = come_and_go(shards, shared_memory);
  ASSERT_EQ(outcome, Exchange::Outcome::ok);
}

// What is left when everything that has ended is gone.
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
  testing::internal::CaptureStdout();  // each says how it exchanges
  Shards shards(spec::SyncPolicy::sync, 1, 2);
  for (int i = 0; i < 50; ++i) surely_come_and_go(shards, GetParam());
  const Usage before = settled(usage());
  for (int i = 0; i < 1000; ++i) surely_come_and_go(shards, GetParam());
  const Usage after = settled(before);
  testing::internal::GetCapturedStdout();
  // gRPC has a few threads and pipes that come and go by themselves.
  EXPECT_LE(after.descriptors, before.descriptors + 10);
  EXPECT_LE(after.threads, before.threads + 10);
  EXPECT_LE(after.bytes, before.bytes + (64 << 20));
}

INSTANTIATE_TEST_SUITE_P(Ways, ChurnTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "shared_memory" : "grpc"; });

// Pushes and never reads what it is answered.
class Talker : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Talker(const Shards& shards, int pushes)
      : stub_(group::make_channel(shards.address(0))),
        gradients_(shards.layout().size(), 0.5f),
        fingerprint_(shards.layout().fingerprint()),
        left_(pushes) {
    stub_.PrepareBidiStreamingCall(&context_, "/muster.ParameterServer/Exchange",
                                   grpc::StubOptions(), this);
    write();
    StartCall();
  }
  ~Talker() override {
    context_.TryCancel();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
  }
  int written() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(sequence_);
  }

 private:
  void write() {
    PushHeader header;
    header.generation = 1;
    header.sequence = ++sequence_;
    header.sums.rows = 1;
    Push message = to_message(header);
    message.mutable_hello()->set_job_uid("uid");
    message.mutable_hello()->set_version("1");
    message.mutable_hello()->set_layout_fingerprint(fingerprint_);
    message.mutable_hello()->set_wire("float32");
    buffer_ = encode(message, grpc::Slice(gradients_.data(), gradients_.size() * sizeof(float)));
    StartWrite(&buffer_);
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (ok && --left_ > 0) write();
  }
  void OnDone(const grpc::Status&) override {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer buffer_;
  const std::vector<float> gradients_;
  const std::string fingerprint_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t sequence_ = 0;
  int left_;
  bool done_ = false;
};

TEST(BackpressureTest, WhoDoesNotReadIsNotReadFrom) {
  Shards shards(spec::SyncPolicy::async, 1, 2);
  ASSERT_LT(shards.layout().size(), kChunkFloats);
  constexpr int kPushes = 2000;
  Talker talker(shards, kPushes);
  int before = -1;
  while (before != talker.written() && talker.written() < kPushes) {  // until nothing moves
    before = talker.written();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  EXPECT_LT(talker.written(), kPushes);
  EXPECT_LE(shards.host(0).counts().pushes, 20u);
}

}  // namespace
}  // namespace muster::ps
