#include "trainer/ps/member/exchange.h"

#include <gmock/gmock.h>

#include <deque>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/trainer/one_tensor.h"
#include "trainer/ps/shard/shard.h"

namespace muster::ps {
namespace {

using testing::ElementsAre;

// A link that hands everything straight to a shard in this process: the third way to carry messages
// besides gRPC and shared memory.
class DirectNetwork {
 public:
  explicit DirectNetwork(std::vector<Shard*> shards) : shards_(std::move(shards)) {}

  class Link : public ShardLink {
   public:
    Link(DirectNetwork& network, size_t shard, uint64_t session)
        : network_(network), shard_(shard), session_(session) {
      network_.links_[{shard, session}] = this;
    }
    ~Link() override {
      network_.links_.erase({shard_, session_});
      Shard::Answers answers;
      network_.shards_[shard_]->detach(session_, answers);
      network_.deliver(shard_, answers);
    }
    void send(const PushHeader& header, compute::ConstPlacedFloats gradients,
              compute::PlacedFloats parameters) override {
      parameters_ = parameters.host();
      state_ = State::waiting;
      Shard::Answers answers;
      if (header.pull)
        network_.shards_[shard_]->pull(session_, header, answers);
      else
        network_.shards_[shard_]->push(session_, header, {gradients, {}}, answers);
      network_.deliver(shard_, answers);
    }
    State state() override { return state_; }
    ReplyHeader reply() const override { return reply_; }
    void receive(const Shard::Answer& answer, const Shard& shard) {
      const auto values =
          answer.values == Shard::Answer::Values::previous ? shard.previous() : shard.parameters();
      if (answer.values != Shard::Answer::Values::none)
        std::copy(values.begin(), values.end(), parameters_.begin());
      reply_ = answer.header;
      state_ = State::answered;
    }
    State state_ = State::idle;

   private:
    DirectNetwork& network_;
    const size_t shard_;
    const uint64_t session_;
    std::span<float> parameters_;
    ReplyHeader reply_;
  };

  Exchange::Connect connect(uint64_t session) {
    return [this, session](const LinkEnd& end) {
      return std::make_unique<Link>(*this, static_cast<size_t>(end.shard), session);
    };
  }
  void deliver(size_t shard, const Shard::Answers& answers) {
    for (const auto& answer : answers)
      if (const auto found = links_.find({shard, answer.session}); found != links_.end())
        found->second->receive(answer, *shards_[shard]);
  }
  Link* link(size_t shard, uint64_t session) { return links_.at({shard, session}); }

 private:
  std::vector<Shard*> shards_;
  std::map<std::pair<size_t, uint64_t>, Link*> links_;
};

class ExchangeTest : public testing::Test {
 protected:
  ExchangeTest()
      : layout_(layout_of(2)),
        optimizer_(compute::Optimizer::create(compute::Sgd{}, layout_)),
        first_(make(0)),
        second_(make(1)),
        network_({&first_, &second_}) {
    schedule_.learning_rate = 1;
  }
  Shard& make(int index) {
    Shard::Shape shape;
    shape.shard = index;
    shape.range = {static_cast<size_t>(index), static_cast<size_t>(index) + 1};
    Shard& shard = shards_.emplace_back(shape, *optimizer_, schedule_);
    Shard::Content content;
    content.parameters = {10};
    shard.load(std::move(content));
    Shard::Answers answers;
    shard.begin(1, 1, {}, answers);
    return shard;
  }
  Exchange exchange(uint64_t session) {
    return Exchange({{0, 1}, {1, 2}}, 0, SyncPolicy::sync, network_.connect(session));
  }
  Exchange::Watch watch() {
    return {{}, [] { return true; }};
  }  // never waits for long

  compute::ParameterLayout layout_;
  std::unique_ptr<compute::Optimizer> optimizer_;
  compute::Schedule schedule_;
  std::deque<Shard> shards_;
  Shard& first_;
  Shard& second_;
  DirectNetwork network_;
};

compute::LossSums one_row() {
  compute::LossSums sums;
  sums.rows = 1;
  sums.weight = 1;
  return sums;
}

TEST_F(ExchangeTest, PushesRangesToTheirShardsAndPullsThemBack) {
  Exchange member = exchange(1);
  member.connect(1);
  std::vector<float> parameters(2);
  EXPECT_EQ(member.align(parameters, watch()).outcome, Exchange::Outcome::ok);
  EXPECT_THAT(parameters, ElementsAre(10, 10));
  const compute::LossSums sums = one_row();
  const std::vector<float> gradients = {1, 2};
  const auto result = member.step(0, 0, sums, gradients, parameters, watch());
  EXPECT_EQ(result.outcome, Exchange::Outcome::ok);
  EXPECT_EQ(result.step, 1u);
  EXPECT_THAT(parameters, ElementsAre(9, 8));
}

TEST_F(ExchangeTest, CountsWhatEachPsHasAnswered) {
  Exchange member = exchange(1);
  EXPECT_TRUE(member.traffic().empty());
  member.connect(1, {2, 0});
  std::vector<float> parameters(2);
  member.align(parameters, watch());
  const std::vector<float> gradients = {1, 2};
  member.step(0, 0, one_row(), gradients, parameters, watch());
  member.connect(1, {0, 0});  // ps 2 is lost, and its shard is served by ps 0 now
  member.align(parameters, watch());
  ASSERT_EQ(member.traffic().size(), 3u);
  EXPECT_EQ(member.traffic()[0].answers, 4u);
  EXPECT_EQ(member.traffic()[0].floats, 5u);
  EXPECT_EQ(member.traffic()[1].answers, 0u);
  EXPECT_EQ(member.traffic()[2].answers, 2u);
  EXPECT_EQ(member.traffic()[2].floats, 3u);
  EXPECT_GE(member.traffic()[2].seconds, 0);
}

// A member died between its push to shard 0, which committed, and the one to shard 1. Its successor
// must see the parameters of the step before on both, and complete the step with the same result.
TEST_F(ExchangeTest, ASuccessorCompletesAStepThatOneShardHasCommitted) {
  std::vector<float> gradient = {1};
  PushHeader header;
  header.generation = 1;
  header.sums.rows = 1;
  header.sums.weight = static_cast<double>(header.sums.rows);
  Shard::Answers answers;
  first_.push(99, header, {gradient, {}}, answers);
  ASSERT_EQ(first_.step(), 1u);

  Exchange member = exchange(2);
  member.connect(1);
  std::vector<float> parameters(2);
  const auto aligned = member.align(parameters, watch());
  EXPECT_EQ(aligned.outcome, Exchange::Outcome::ok);
  EXPECT_EQ(aligned.step, 0u);
  EXPECT_THAT(parameters, ElementsAre(10, 10));
  const compute::LossSums sums = one_row();
  const std::vector<float> gradients = {1, 2};
  const auto result = member.step(0, 0, sums, gradients, parameters, watch());
  EXPECT_EQ(result.outcome, Exchange::Outcome::ok);
  EXPECT_THAT(parameters, ElementsAre(9, 8));
  EXPECT_EQ(first_.step(), 1u);
  EXPECT_EQ(second_.step(), 1u);
}

TEST_F(ExchangeTest, ALostLinkBreaksTheExchange) {
  const std::vector<float> gradients = {1, 2};  // outlives the links that read it where it is
  Exchange member = exchange(1);
  member.connect(1);
  std::vector<float> parameters(2);
  member.align(parameters, watch());
  Shard::Answers answers;
  second_.begin(1, 2, {}, answers);  // waits for a second member
  network_.link(1, 1)->state_ = ShardLink::State::broken;
  const compute::LossSums sums = one_row();
  const auto result = member.step(0, 0, sums, gradients, parameters, watch());
  EXPECT_NE(result.outcome, Exchange::Outcome::ok);
}

TEST_F(ExchangeTest, AnotherGenerationSupersedes) {
  Exchange member = exchange(1);
  member.connect(7);
  std::vector<float> parameters(2);
  EXPECT_EQ(member.align(parameters, watch()).outcome, Exchange::Outcome::superseded);
}

TEST_F(ExchangeTest, ARejectionIsThrownWithTheShardsWords) {
  Exchange member({{0, 1}, {1, 2}}, 5, SyncPolicy::sync, network_.connect(1));
  member.connect(1);
  std::vector<float> parameters(2);
  try {
    member.align(parameters, watch());
    FAIL() << "expected a rejection";
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kProtocol);
    EXPECT_THAT(error.what(), testing::HasSubstr("shard 0 rejected"));
  }
}

}  // namespace
}  // namespace muster::ps
