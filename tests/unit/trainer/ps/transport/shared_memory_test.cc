#include "trainer/ps/transport/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "common/error.h"
#include "trainer/ps/transport/link_bell.h"

namespace muster::ps {
namespace {

using testing::HasSubstr;

constexpr SegmentShape kShape{1000, 2};

std::string refusal(const SharedMemoryOffer& offer, SegmentShape shape = kShape) {
  try {
    const OfferedMemory memory(offer, shape);
    return "";
  } catch (const Invalid& error) {
    return error.what();
  }
}

TEST(SharedMemoryTest, WhatOneSideWritesTheOtherReads) {
  const MemberMemory member(kShape, 7);
  const OfferedMemory shard(member.offer(), kShape);
  ASSERT_NE(member.view().base, shard.view().base);
  member.view().gradients().host()[999] = 3;
  shard.view().parameters().host()[0] = 4;
  EXPECT_EQ(shard.view().gradients().host()[999], 3);
  EXPECT_EQ(member.view().parameters().host()[0], 4);
  EXPECT_EQ(shard.view().header().spins, 7u);
}

TEST(SharedMemoryTest, PartsDoNotOverlap) {
  const MemberMemory member(kShape, 0);
  const SegmentView& view = member.view();
  const auto* end = reinterpret_cast<std::byte*>(&view.mailbox(1) + 1);
  EXPECT_LE(reinterpret_cast<std::byte*>(&view.header() + 1),
            reinterpret_cast<std::byte*>(&view.mailbox(0)));
  EXPECT_LE(end, reinterpret_cast<std::byte*>(view.gradients().address()));
  EXPECT_LE(view.gradients().address() + 1000, view.parameters().address());
  EXPECT_LE(reinterpret_cast<std::byte*>(view.parameters().address() + 1000),
            view.base + kShape.size());
}

// A shard that was declared lost goes on writing, while an earlier push is still pending.
TEST(SharedMemoryTest, RenewedItIsOutOfReachOfWhoHadIt) {
  MemberMemory member(kShape, 0);
  member.view().gradients().host()[5] = 1;
  const SharedMemoryOffer before = member.offer();
  const OfferedMemory shard(before, kShape);
  const std::byte* base = member.view().base;
  member.renew();
  EXPECT_EQ(member.view().base, base);
  EXPECT_EQ(member.view().gradients().host()[5], 0);
  member.view().gradients().host()[5] = 2;
  shard.view().parameters().host()[5] = 9;
  EXPECT_EQ(shard.view().gradients().host()[5], 1);
  EXPECT_EQ(member.view().parameters().host()[5], 0);
  EXPECT_NE(refusal(before), "");  // stale
  EXPECT_EQ(refusal(member.offer()), "");
}

TEST(SharedMemoryTest, IsNotResizable) {
  const MemberMemory member(kShape, 0);
  const std::string path = "/proc/self/fd/" + std::to_string(member.offer().fd());
  EXPECT_NE(truncate(path.c_str(), 0), 0);
}

TEST(SharedMemoryTest, AnOfferOfAnotherHostIsRefused) {
  const MemberMemory member(kShape, 0);
  SharedMemoryOffer offer = member.offer();
  offer.set_pid(0x7fffffff);
  EXPECT_THAT(refusal(offer), HasSubstr("not on this host"));
  offer = member.offer();
  offer.set_fd(0);
  EXPECT_THAT(refusal(offer), HasSubstr("not on this host"));
}

TEST(SharedMemoryTest, AnotherProcesssMemoryIsRefused) {
  const MemberMemory member(kShape, 0);
  SharedMemoryOffer offer = member.offer();
  offer.set_nonce(offer.nonce() + 1);
  EXPECT_THAT(refusal(offer), HasSubstr("another process's"));
}

TEST(SharedMemoryTest, AnotherShapeIsRefused) {
  const MemberMemory member(kShape, 0);
  EXPECT_THAT(refusal(member.offer(), {100000, 2}), HasSubstr("bytes"));
  EXPECT_THAT(refusal(member.offer(), {1001, 2}), HasSubstr("another process's"));
}

TEST(SharedMemoryTest, MemoryThatCouldShrinkIsRefused) {
  const MemberMemory member(kShape, 0);
  const int descriptor = memfd_create("muster-member", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(ftruncate(descriptor, static_cast<off_t>(kShape.size())), 0);
  ASSERT_EQ(pwrite(descriptor, member.view().base, 4096, 0), 4096);
  SharedMemoryOffer offer = member.offer();
  offer.set_fd(static_cast<uint32_t>(descriptor));
  EXPECT_THAT(refusal(offer), HasSubstr("sealed"));
  close(descriptor);
}

TEST(SharedMemoryTest, HeadersComeBackAsTheyWentIn) {
  PushHeader push;
  push.generation = 3;
  push.rank = 2;
  push.step = uint64_t{1} << 40;
  push.sequence = 5;
  push.ticket = 9;
  push.newest = push.pull = true;
  push.contributors.set(0).set(kMostContributors - 1);
  push.sums.rows = 32;
  push.sums.loss = 1.5;
  push.sums.weight = 31.5;
  push.sums.terms = {30, 0, 0, 0, 7};
  const auto back = from_block(to_block(push));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->generation, 3u);
  EXPECT_EQ(back->rank, 2u);
  EXPECT_EQ(back->step, uint64_t{1} << 40);
  EXPECT_EQ(back->sequence, 5u);
  EXPECT_EQ(back->ticket, 9u);
  EXPECT_TRUE(back->pull && back->newest);
  EXPECT_EQ(back->contributors, push.contributors);
  EXPECT_EQ(back->sums.rows, 32);
  EXPECT_EQ(back->sums.loss, 1.5);
  EXPECT_EQ(back->sums, push.sums);
  for (const Status status : {Status::ok, Status::superseded, Status::rejected}) {
    ReplyHeader reply;
    reply.status = status;
    reply.message = std::string(1000, 'x');
    reply.ticket = 4;
    reply.finished = true;
    reply.contributors.set(77);
    const ReplyHeader answer = from_block(to_block(reply));
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.message, std::string(255, 'x'));
    EXPECT_EQ(answer.ticket, 4u);
    EXPECT_TRUE(answer.finished);
    EXPECT_EQ(answer.contributors, reply.contributors);
  }
}

TEST(SharedMemoryTest, BlocksThatNobodyWroteAreToldApart) {
  RequestBlock request = to_block(PushHeader{});
  EXPECT_TRUE(from_block(request));
  request.sums.rows = -1;
  EXPECT_FALSE(from_block(request));
  request.sums.rows = 3;
  for (const double weight : {-1.0, 1e300, std::nan("")}) {
    request.sums.weight = weight;
    EXPECT_FALSE(from_block(request)) << weight;
  }
  ReplyBlock reply;
  std::memset(static_cast<void*>(&reply), 0xff, sizeof reply);
  const ReplyHeader header = from_block(reply);
  EXPECT_EQ(header.status, Status::rejected);
  EXPECT_EQ(header.message.size(), sizeof reply.message);
}

TEST(BellTest, ARingFromAnotherMappingWakes) {
  const MemberMemory member(kShape, 0);
  const OfferedMemory shard(member.offer(), kShape);
  LinkBell bell;
  bell.hang(&member.view().header().bell, 100);
  std::atomic<bool> ready{false};
  std::thread other([&] {
    ready = true;
    ring(shard.view().header().bell);
  });
  EXPECT_TRUE(bell.wait({}, std::chrono::minutes(1), [&] { return ready.load(); }));
  other.join();
}

TEST(BellTest, WaitsNoLongerThanToldAndUntilStopped) {
  LinkBell bell;
  EXPECT_FALSE(bell.wait({}, std::chrono::milliseconds(1), [] { return false; }));
  std::stop_source source;
  std::jthread other([&] { source.request_stop(); });
  EXPECT_FALSE(bell.wait(source.get_token(), std::chrono::minutes(10), [] { return false; }));
}

}  // namespace
}  // namespace muster::ps
