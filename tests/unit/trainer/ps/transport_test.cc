#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <random>
#include <stop_token>
#include <thread>

#include "common/error.h"
#include "common/system/descriptor.h"
#include "common/threads/cpu_budget.h"
#include "proto/muster/parameter_server.grpc.pb.h"
#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "tests/unit/trainer/ps/shards.h"
#include "trainer/group/grpc_server.h"
#include "trainer/host/instruction_set.h"
#include "trainer/ps/group/control.h"
#include "trainer/ps/member/shm_link.h"

namespace muster::ps {
namespace {

enum class Way { grpc, shared_memory, in_place, gpu };

// Stands in for the computing: numbers that depend on rank and step only.
class Member {
 public:
  Member(const Shards& shards, uint32_t rank, bool sync, Way way)
      : rank_(rank), way_(way), size_(shards.layout().size()) {
    if (way == Way::gpu) gpu_ = compute::testing::make_simulated_gpu();
    if (way != Way::grpc)
      memory_ = std::make_unique<MemberMemory>(
          SegmentShape{size_, static_cast<size_t>(shards.count())}, 0, gpu_.get());
    if (way != Way::in_place) {
      own_gradients_.resize(size_);
      own_parameters_.resize(size_);
    }
    exchange_ = std::make_unique<Exchange>(
        shards.layout().partition(shards.count()), rank,
        sync ? SyncPolicy::sync : SyncPolicy::async,
        [&shards](const LinkEnd& end) -> std::unique_ptr<ShardLink> {
          LinkHello hello{"uid", "1", shards.layout().fingerprint(), {}, shards.wire(), end.shard};
          hello.plaintext = !shards.identity();
          if (end.memory) hello.shared_memory = end.memory->offer();
          auto stream =
              make_grpc_link(group::make_channel(shards.address(static_cast<size_t>(end.shard)),
                                                 shards.identity()),
                             hello, end.bell);
          if (!end.memory) return stream;
          return make_shm_link(std::move(stream), end, "ps");
        },
        memory_.get());
  }

  bool join() {
    stop_ = {};
    exchange_->connect(1);
    return take(exchange_->align(exchanged_parameters(), watch()));
  }
  bool step() {
    std::mt19937 random(static_cast<unsigned>(rank_ * 1000 + step_));
    std::uniform_real_distribution<float> number(-1, 1);
    for (float& gradient : gradients()) gradient = number(random);
    return take(exchange_->step(step_, ticket_, sums(), exchanged_gradients(),
                                exchanged_parameters(), watch()));
  }
  // Begins a step without waiting for its end.
  void begin_step() {
    std::fill(gradients().begin(), gradients().end(), 0.5f);
    stop_ = {};
    under_way_ = std::async(std::launch::async, [this] {
      return exchange_->step(step_, ticket_, sums(), exchanged_gradients(), exchanged_parameters(),
                             watch());
    });
  }
  Exchange::Result end_step() { return under_way_.get(); }
  Exchange::Result give_up() {
    stop_.request_stop();
    return under_way_.get();
  }
  MemberMemory& memory() { return *memory_; }
  std::vector<float> values() {
    if (gpu_) {
      const compute::PlacedFloats placed = memory_->view().parameters();
      gpu_->fetch(parameters().data(), placed.address(), placed.size_bytes()).wait();
    }
    return {parameters().begin(), parameters().end()};
  }
  std::span<float> parameters() {
    return way_ == Way::in_place ? memory_->view().parameters().host() : std::span(own_parameters_);
  }
  std::span<float> gradients() {
    return way_ == Way::in_place ? memory_->view().gradients().host() : std::span(own_gradients_);
  }

 private:
  // These return what the exchange is given. With a GPU it lies there: gradients are copied to it
  // here, and parameters from it by values().
  compute::PlacedFloats exchanged_gradients() {
    if (!gpu_) return gradients();
    const compute::PlacedFloats placed = memory_->view().gradients();
    gpu_->put(placed.address(), gradients().data(), placed.size_bytes()).wait();
    return placed;
  }
  compute::PlacedFloats exchanged_parameters() {
    return gpu_ ? memory_->view().parameters() : parameters();
  }
  static compute::LossSums sums() {
    compute::LossSums sums;
    sums.rows = 4;
    sums.weight = static_cast<double>(sums.rows);
    sums.loss = 1;
    return sums;
  }
  Exchange::Watch watch() const {
    return {stop_.get_token(), [] { return false; }};
  }
  bool take(const Exchange::Result& result) {
    step_ = result.step;
    ticket_ = result.ticket.value_or(0);
    return result.outcome == Exchange::Outcome::ok;
  }

  const uint32_t rank_;
  const Way way_;
  const size_t size_;
  std::vector<float> own_gradients_, own_parameters_;
  std::unique_ptr<compute::cuda::Gpu> gpu_;
  std::unique_ptr<MemberMemory> memory_;
  uint64_t step_ = 0;
  uint64_t ticket_ = 0;
  std::unique_ptr<Exchange> exchange_;
  std::stop_source stop_;
  std::future<Exchange::Result> under_way_;
};

constexpr std::chrono::milliseconds kLongEnough{50};  // for a message to arrive

std::vector<float> train(Shards& shards, bool sync, const std::vector<Way>& ways, int steps) {
  std::vector<std::unique_ptr<Member>> members;
  for (size_t rank = 0; rank < ways.size(); ++rank)
    members.push_back(
        std::make_unique<Member>(shards, static_cast<uint32_t>(rank), sync, ways[rank]));
  std::vector<std::thread> threads;
  for (auto& member : members)
    threads.emplace_back([&member, steps] {
      ASSERT_TRUE(member->join());
      for (int i = 0; i < steps; ++i) ASSERT_TRUE(member->step());
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& member : members) EXPECT_EQ(member->values(), members[0]->values());
  return members[0]->values();
}

class WireTypeTest : public testing::TestWithParam<WireType> {};
INSTANTIATE_TEST_SUITE_P(Types, WireTypeTest,
                         testing::Values(WireType::float32, WireType::bfloat16),
                         [](const auto& info) { return spec::name_of(info.param); });

TEST_P(WireTypeTest, ASynchronousJobHasTheSameBitsWhateverCarriesThem) {
  std::vector<float> expected;
  for (const std::vector<Way>& ways :
       {std::vector{Way::grpc, Way::grpc}, std::vector{Way::shared_memory, Way::shared_memory},
        std::vector{Way::grpc, Way::shared_memory}, std::vector{Way::in_place, Way::in_place}}) {
    for (const int count : {1, 2}) {
      Shards shards(spec::SyncPolicy::sync, count, 2, GetParam());
      const std::vector<float> values = train(shards, true, ways, 30);
      if (expected.empty()) expected = values;
      EXPECT_EQ(values, expected);
      EXPECT_EQ(shards.host(0).counts().commits, 30u);
    }
  }
  Shards in_plaintext(spec::SyncPolicy::sync, 2, 2, GetParam(), 20, group::Identity());
  EXPECT_EQ(train(in_plaintext, true, {Way::grpc, Way::grpc}, 30), expected);
}

std::shared_ptr<compute::cuda::Gpu> make_gpu() {
  return compute::testing::make_simulated_gpu();
}

// A member exchanges through the shard's GPU, or through the host where either side has none.
TEST_P(WireTypeTest, ShardsOnGpusGiveTheBitsOfTheCpuWhateverCarriesThem) {
  if (!host::fuses()) GTEST_SKIP() << "this CPU does not fuse multiply and add, as a GPU does";
  for (const bool sync : {true, false}) {
    const spec::SyncPolicy policy = sync ? spec::SyncPolicy::sync : spec::SyncPolicy::async;
    std::vector<std::vector<Way>> all = {{Way::gpu}, {Way::grpc}, {Way::in_place}};
    if (sync)
      all = {{Way::gpu, Way::gpu}, {Way::gpu, Way::grpc}, {Way::in_place, Way::gpu, Way::grpc}};
    for (const std::vector<Way>& ways : all) {
      const auto members = static_cast<int>(ways.size());
      const std::vector<Way> by_stream(ways.size(), Way::grpc);
      for (const int count : {1, 2}) {
        Shards on_cpu(policy, count, members, GetParam());
        const std::vector<float> expected = train(on_cpu, sync, by_stream, 10);
        Shards on_gpu(policy, count, members, GetParam(), 20, group::identity_of_tests(), make_gpu);
        EXPECT_EQ(train(on_gpu, sync, ways, 10), expected);
        EXPECT_NO_THROW(on_gpu.host(0).require_faultless());
      }
    }
  }
  Shards on_cpu(spec::SyncPolicy::async, 1, 1, GetParam());
  const std::vector<float> expected = train(on_cpu, false, {Way::grpc}, 10);
  // A shard on the CPU refuses the GPU's memory, and the member falls back to the stream.
  Shards refusing(spec::SyncPolicy::async, 1, 1, GetParam());
  EXPECT_EQ(train(refusing, false, {Way::gpu}, 10), expected);
}

TEST(TransportTest, AShardWhoseGpuIsLostSaysSoAndServesNobody) {
  const std::shared_ptr<compute::cuda::Gpu> gpu = make_gpu();
  Shards shards(spec::SyncPolicy::async, 1, 1, WireType::float32, 20, group::identity_of_tests(),
                [&] { return gpu; });
  Member member(shards, 0, false, Way::grpc);
  ASSERT_TRUE(member.join());
  ASSERT_TRUE(member.step());
  compute::testing::lose(*gpu);
  EXPECT_FALSE(member.step());
  EXPECT_THROW(shards.host(0).require_faultless(), DeviceError);
  EXPECT_FALSE(member.join());
}

TEST(TransportTest, AnOpeningThatIsRefusedIsNoFailureOfTheGpu) {
  Shards shards(spec::SyncPolicy::sync, 1, 1, WireType::float32, 20, group::identity_of_tests(),
                make_gpu);
  OpenRequest next = shards.opening(0, 1);
  next.set_generation(2);
  shards.host(0).open(next);
  EXPECT_THROW(shards.host(0).open(shards.opening(0, 1)), Unavailable) << "it was superseded";
  EXPECT_NO_THROW(shards.host(0).require_faultless());
}

TEST(TransportTest, AMessageWithoutItsCrcEndsAStreamInPlaintext) {
  Shards shards(spec::SyncPolicy::async, 1, 1, WireType::float32, 20, group::Identity());
  const auto stub =
      ParameterServer::NewStub(group::make_channel(shards.address(0), group::Identity()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stream = stub->Exchange(&context);
  Push push;
  push.mutable_hello()->set_job_uid("uid");
  push.set_generation(1);
  stream->Write(push);
  Reply reply;
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(shards.host(0).counts().pushes, 0u);
}

TEST_P(WireTypeTest, AnAsynchronousMemberGetsTheSameBitsWhateverCarriesThem) {
  std::vector<float> expected;
  for (const Way way : {Way::grpc, Way::shared_memory, Way::in_place}) {
    Shards shards(spec::SyncPolicy::async, 1, 1, GetParam());
    const std::vector<float> values = train(shards, false, {way}, 30);
    if (expected.empty()) expected = values;
    EXPECT_EQ(values, expected);
  }
}

class LostMemberTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Memory, LostMemberTest, testing::Values(Way::in_place, Way::gpu),
                         [](const auto& info) {
                           return info.param == Way::gpu ? "of_a_gpu" : "of_the_host";
                         });

TEST_P(LostMemberTest, LeavesItsPushAsItWas) {
  std::vector<float> expected;
  for (const bool lost : {false, true}) {
    Shards shards(spec::SyncPolicy::sync, 1, 2, WireType::float32, 20, group::identity_of_tests(),
                  [] { return GetParam() == Way::gpu ? make_gpu() : nullptr; });
    auto first = std::make_unique<Member>(shards, 0, true, GetParam());
    Member second(shards, 1, true, GetParam());
    ASSERT_TRUE(first->join());
    ASSERT_TRUE(second.join());
    first->begin_step();
    if (lost) {
      std::this_thread::sleep_for(kLongEnough);
      EXPECT_EQ(first->give_up().outcome, Exchange::Outcome::interrupted);
      first = std::make_unique<Member>(shards, 0, true, GetParam());
      ASSERT_TRUE(first->join());
      first->begin_step();
    }
    second.begin_step();
    EXPECT_EQ(second.end_step().outcome, Exchange::Outcome::ok);
    EXPECT_EQ(first->end_step().outcome, Exchange::Outcome::ok);
    EXPECT_EQ(first->values(), second.values());
    if (expected.empty()) expected = second.values();
    EXPECT_EQ(second.values(), expected);
    EXPECT_EQ(shards.host(0).counts().conflicting, 0u);
  }
}

TEST(TransportTest, AMemberThatRejoinsIsOutOfReachOfItsOldPush) {
  Shards shards(spec::SyncPolicy::sync, 1, 2);
  Member first(shards, 0, true, Way::in_place);
  Member second(shards, 1, true, Way::in_place);
  ASSERT_TRUE(first.join());
  ASSERT_TRUE(second.join());
  first.begin_step();
  std::this_thread::sleep_for(kLongEnough);
  first.give_up();
  ASSERT_TRUE(first.join());
  const std::vector<float> before = first.values();
  std::ranges::fill(first.gradients(), 77.0f);  // the member computes anew
  second.begin_step();
  EXPECT_EQ(second.end_step().outcome, Exchange::Outcome::ok);
  EXPECT_NE(second.values(), before);
  EXPECT_EQ(first.values(), before);
}

TEST(TransportTest, BothEndsMustSendTheSame) {
  Shards shards(spec::SyncPolicy::sync, 1, 1, WireType::bfloat16);
  Exchange exchange(shards.layout().partition(1), 0, SyncPolicy::sync, [&](const LinkEnd& end) {
    const LinkHello hello{"uid", "1", shards.layout().fingerprint(), {}, WireType::float32};
    return make_grpc_link(group::make_channel(shards.address(0), group::identity_of_tests()), hello,
                          end.bell);
  });
  exchange.connect(1);
  std::vector<float> parameters(shards.layout().size());
  const Exchange::Watch watch{{}, [] { return false; }};
  try {
    exchange.align(parameters, watch);
    FAIL() << "expected a rejection";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("expected floats sent as \"bfloat16\", found \"float32\""));
  }
}

// Returns whether messages that a ps sends to a second copy are answered.
bool is_heard(const Shards& shards, const std::string& job_uid) {
  const auto stub =
      ParameterServer::NewStub(group::make_channel(shards.address(0), group::identity_of_tests()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const auto stream = stub->Follow(&context);
  Forward greeting;
  OpenRequest& opening = *greeting.mutable_hello()->mutable_opening();
  opening.set_job_uid(job_uid);
  opening.set_version("1");
  opening.set_training_fingerprint("training");
  opening.set_layout_fingerprint(shards.layout().fingerprint());
  opening.set_generation(1);
  opening.set_members(1);
  stream->Write(greeting);
  Acknowledgement reply;
  const bool heard = stream->Read(&reply);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  return heard;
}

TEST(TransportTest, ASecondCopyIsOfTheSameJob) {
  Shards shards(spec::SyncPolicy::sync, 1, 1);
  EXPECT_TRUE(is_heard(shards, "uid"));
  EXPECT_FALSE(is_heard(shards, "another"));
}

TEST(TransportTest, AStreamThatDoesNotSayWhoItIsFromIsEnded) {
  Shards shards(spec::SyncPolicy::sync, 1, 1);
  const std::string address = free_address();
  const Server server(address, group::identity_of_tests(), {&shards.host(0)},
                      std::chrono::milliseconds(1000));
  const auto stub =
      ParameterServer::NewStub(group::make_channel(address, group::identity_of_tests()));
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(60);
  grpc::ClientContext contexts[3];
  for (grpc::ClientContext& context : contexts) context.set_deadline(deadline);
  const auto greeted = stub->Exchange(&contexts[0]);
  Push push;
  push.mutable_hello()->set_job_uid("uid");
  push.mutable_hello()->set_version("1");
  push.mutable_hello()->set_layout_fingerprint(shards.layout().fingerprint());
  push.mutable_hello()->set_wire("float32");
  push.set_pull(true);
  greeted->Write(push);
  Reply reply;
  ASSERT_TRUE(greeted->Read(&reply));
  const auto member = stub->Exchange(&contexts[1]);
  const auto standby = stub->Follow(&contexts[2]);
  Acknowledgement acknowledgement;
  EXPECT_FALSE(member->Read(&reply));
  EXPECT_FALSE(standby->Read(&acknowledgement));
  EXPECT_TRUE(member->Finish().ok());
  EXPECT_TRUE(standby->Finish().ok());
  push.clear_hello();
  push.set_sequence(1);
  greeted->Write(push);
  EXPECT_TRUE(greeted->Read(&reply));
  contexts[0].TryCancel();
  greeted->Finish();
}

TEST(TransportTest, AMemberThatTalksOutOfTurnIsCutOffThoughItsMemoryIsWaitedFor) {
  Shards shards(spec::SyncPolicy::sync, 1, 2);
  const MemberMemory memory(SegmentShape{shards.layout().size(), 1}, 0);
  const auto stub =
      ParameterServer::NewStub(group::make_channel(shards.address(0), group::identity_of_tests()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stream = stub->Exchange(&context);
  Push push;
  push.mutable_hello()->set_job_uid("uid");
  push.mutable_hello()->set_version("1");
  push.mutable_hello()->set_layout_fingerprint(shards.layout().fingerprint());
  push.mutable_hello()->set_wire("float32");
  *push.mutable_hello()->mutable_shared_memory() = memory.offer();
  push.set_pull(true);  // of no generation: nobody is there yet
  stream->Write(push);
  Reply reply;
  ASSERT_TRUE(stream->Read(&reply));
  ASSERT_EQ(reply.shared_memory(), Reply::ACCEPTED) << reply.shared_memory_refusal();
  PushHeader header;  // the other member's is awaited
  header.generation = header.sequence = 1;
  header.sums.rows = 1;
  header.sums.weight = static_cast<double>(header.sums.rows);
  memory.view().mailbox(0).request = to_block(header);
  ring(memory.view().mailbox(0).requests);
  for (int i = 0; i < 3000 && !shards.host(0).state().used(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(shards.host(0).state().used());
  testing::internal::CaptureStdout();
  stream->Write(push);
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::AllOf(testing::HasSubstr("a request before the last one's reply"),
                             testing::HasSubstr("127.0.0.1")));
}

// Rank 0's call to write the shard's state at a speed that would take weeks.
class SlowWriteTest : public testing::Test {
 protected:
  SlowWriteTest() : folder_(std::filesystem::path(testing::TempDir()) / "slow-write") {
    std::filesystem::remove_all(folder_);
    for (const char* name : {"first", "second"})
      std::filesystem::create_directories(folder_ / name);
    control_.snapshot(1, false, kDeadline);
  }
  ~SlowWriteTest() override { std::filesystem::remove_all(folder_); }
  std::future<bool> write(const std::string& name) {
    return std::async(std::launch::async, [this, name] {
      WriteRequest request;
      request.set_generation(1);
      request.set_directory("slow-write/" + name);
      request.set_bytes_per_second(0.01);
      try {
        return control_.write(request, {0}, kDeadline).size() == 1;
      } catch (const Unavailable&) {
        return false;
      }
    });
  }
  bool has_begun(const std::string& name) {
    for (int i = 0; i < 3000 && std::filesystem::is_empty(folder_ / name); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return !std::filesystem::is_empty(folder_ / name);
  }

  static constexpr std::chrono::milliseconds kDeadline{60000};
  const std::filesystem::path folder_;
  Shards shards_{spec::SyncPolicy::sync, 1, 1};
  Control control_{{shards_.address(0)}, group::identity_of_tests(), "uid"};
};

TEST_F(SlowWriteTest, IsHurriedOnBehalfOfWhoWaits) {
  auto written = write("first");
  ASSERT_TRUE(has_begun("first"));
  control_.hurry(1, {0}, kDeadline);
  EXPECT_TRUE(written.get());
}

TEST_F(SlowWriteTest, MayBeHurriedBeforeItBegins) {
  control_.hurry(1, {0}, kDeadline);
  EXPECT_TRUE(write("first").get());
}

TEST_F(SlowWriteTest, APsThatEndsDoesNotBeginWhatWaits) {
  auto first = write("first");
  ASSERT_TRUE(has_begun("first"));
  auto second = write("second");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // else it finds no ps: fine too
  shards_.shut_down(0);
  EXPECT_FALSE(second.get());
  first.get();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "second"));
}

// Makes every new thread fail, as a limit on threads does, by stacks too large for any address
// space.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t huge;
    EXPECT_EQ(pthread_getattr_default_np(&usual_), 0);
    EXPECT_EQ(pthread_attr_init(&huge), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() { pthread_setattr_default_np(&usual_); }

 private:
  pthread_attr_t usual_;
};

// The sender tries again later. A shard of this size is updated with two threads, if there are CPUs
// for them.
TEST(TransportTest, ASecondCopyThatThereAreNoThreadsForIsRefused) {
  constexpr int kPixels = 784;
  const Shards shards(spec::SyncPolicy::sync, 1, 1, WireType::float32, kPixels);
  ShardHost host(training(spec::SyncPolicy::sync),
                 HostIdentity{"uid", "1", "training", testing::TempDir(), 0, 1, 7});
  ForwardHello greeting;
  greeting.set_incarnation(7);
  *greeting.mutable_opening() = shards.opening(0, 1);
  Forward message;
  *message.mutable_hello() = greeting;
  if (cpu_budget() > 1) {
    const NoThreads limit;
    const Acknowledgement reply = host.follow(greeting, message, {});
    EXPECT_EQ(reply.status(), Acknowledgement::REJECTED);
    EXPECT_THAT(reply.message(), testing::HasSubstr("threads"));
  }
  EXPECT_EQ(host.follow(greeting, message, {}).status(), Acknowledgement::OK);
}

class ToldNotTo {
 public:
  ToldNotTo() { setenv("MUSTER_SHARED_MEMORY", "0", 1); }
  ~ToldNotTo() { unsetenv("MUSTER_SHARED_MEMORY"); }
};

TEST(TransportTest, AShardThatRefusesIsReachedByGrpc) {
  const ToldNotTo environment;
  Shards shards(spec::SyncPolicy::sync, 1, 1);
  testing::internal::CaptureStdout();
  train(shards, true, {Way::shared_memory}, 3);
  const std::string log = testing::internal::GetCapturedStdout();
  EXPECT_THAT(log, testing::HasSubstr("exchange through gRPC"));
  EXPECT_EQ(shards.host(0).counts().commits, 3u);
}

struct Scribble {
  const char* name;
  void (*write)(Mailbox& mailbox);
};

class HostileMemberTest : public testing::TestWithParam<Scribble> {};

TEST_P(HostileMemberTest, LosesItsLinkAndHarmsNobody) {
  Shards shards(spec::SyncPolicy::sync, 1, 1);
  Member member(shards, 0, true, Way::in_place);
  ASSERT_TRUE(member.join());
  ASSERT_TRUE(member.step());
  GetParam().write(member.memory().view().mailbox(0));
  member.begin_step();
  EXPECT_EQ(member.end_step().outcome, Exchange::Outcome::broken);
  bool joined = member.join();
  for (int i = 0; i < 100 && !joined; ++i) {  // as PsSynchronizer does
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    joined = member.join();
  }
  ASSERT_TRUE(joined);
  EXPECT_TRUE(member.step());
}

INSTANTIATE_TEST_SUITE_P(
    Scribbles, HostileMemberTest,
    testing::Values(Scribble{"rings_ahead", [](Mailbox& mailbox) { mailbox.requests.count += 5; }},
                    Scribble{"rings_back", [](Mailbox& mailbox) { mailbox.requests.count -= 3; }}),
    [](const auto& info) { return std::string(info.param.name); });

// Says that it speaks HTTP/2 and that any amount of data is welcome, and takes none of it.
class DeafPeer {
 public:
  DeafPeer() : thread_([this] { greet(); }) {}
  std::string address() const { return listener_.address(); }

 private:
  void greet() {
    peer_ = Descriptor(listener_.accept_one());
    constexpr unsigned char kSettings[] = {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff};
    constexpr unsigned char kWindow[] = {0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0, 0};
    ::send(peer_.get(), kSettings, sizeof kSettings, MSG_NOSIGNAL);
    ::send(peer_.get(), kWindow, sizeof kWindow, MSG_NOSIGNAL);
  }
  const Listener listener_;
  Descriptor peer_;
  std::jthread thread_;
};

TEST(TransportTest, ALinkWhosePeerTakesNothingCanBeClosed) {
  const DeafPeer peer;
  std::vector<float> gradients(16 << 20), parameters(gradients.size());
  LinkBell bell;
  {
    const auto link = make_grpc_link(group::make_channel(peer.address(), group::Identity()),
                                     LinkHello{"uid", "1", "", {}, {}}, bell);
    link->send(PushHeader{}, gradients, parameters);
    std::this_thread::sleep_for(4 * kLongEnough);
    EXPECT_EQ(link->state(), ShardLink::State::waiting);
  }
  std::ranges::fill(gradients, 1.0f);  // no longer read by anybody
}

TEST(TransportTest, AShardThatGoesBreaksTheLink) {
  Shards shards(spec::SyncPolicy::sync, 1, 2);  // the other one never comes
  Member member(shards, 0, true, Way::in_place);
  ASSERT_TRUE(member.join());
  member.begin_step();
  std::this_thread::sleep_for(kLongEnough);
  shards.shut_down(0);
  EXPECT_EQ(member.end_step().outcome, Exchange::Outcome::broken);
}

}  // namespace
}  // namespace muster::ps
