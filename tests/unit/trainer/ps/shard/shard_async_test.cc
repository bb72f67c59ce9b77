#include <gmock/gmock.h>

#include "tests/unit/trainer/one_tensor.h"
#include "trainer/ps/shard/shard.h"

namespace muster::ps {
namespace {

using compute::Floats;
using compute::OptimizerSpec;
using testing::ElementsAre;

// Two parameters, 3 and 4, that SGD of rate 1 updates with what may stand beside its formula.
class AsyncOptimizerTest : public testing::Test {
 protected:
  static OptimizerSpec sgd() { return compute::Sgd{}; }

  struct Result {
    std::vector<float> parameters;
    std::vector<float> average;  // empty: there is none
  };
  // Each of two members pushes the sum of two rows, of which the mean gradient is 3 and 4. The
  // second one has not seen the first one's update.
  static Result after_two_pushes(const OptimizerSpec& spec) {
    const compute::ParameterLayout layout = layout_of(2);
    const auto optimizer = compute::Optimizer::create(spec, layout);
    compute::Schedule schedule;
    schedule.learning_rate = 1.0;
    Shard::Shape shape;
    shape.range = {0, layout.size()};
    shape.policy = SyncPolicy::async;
    Shard shard(shape, *optimizer, schedule);
    Shard::Content content;
    content.parameters = floats(layout.size(), 3, 4);
    for (size_t i = 0; i < optimizer->slot_names().size(); ++i) {
      content.slots.emplace_back(layout.size());
      optimizer->start_slot(i, content.parameters, content.slots.back());
    }
    shard.load(std::move(content));
    Shard::Answers answers;
    shard.begin(1, 2, Tickets(0, 10, {}), answers);
    for (uint32_t rank = 0; rank < 2; ++rank) shard.pull(rank + 1, header(rank, 1), answers);
    const Floats gradients = floats(layout.size(), 6, 8);
    for (uint32_t rank = 0; rank < 2; ++rank)
      shard.push(rank + 1, header(rank, 2), {gradients, {}}, answers);
    EXPECT_EQ(shard.step(), 2u);
    Result result{first_two(shard.parameters()), {}};
    if (const auto average = optimizer->average_slot())
      result.average = first_two(shard.slots()[*average]);
    return result;
  }

 private:
  static PushHeader header(uint32_t rank, uint64_t sequence) {
    PushHeader header;
    header.generation = 1;
    header.rank = rank;
    header.sequence = sequence;
    header.ticket = rank;
    header.sums.rows = 2;
    header.sums.weight = 2;
    return header;
  }
  static Floats floats(size_t size, float first, float second) {
    Floats values(size);
    values[0] = first;
    values[1] = second;
    return values;
  }
  static std::vector<float> first_two(std::span<const float> values) {
    return {values[0], values[1]};
  }
};

TEST_F(AsyncOptimizerTest, HasTheFormulaAlone) {
  const Result result = after_two_pushes(sgd());
  EXPECT_THAT(result.parameters, ElementsAre(-3, -4));
  EXPECT_THAT(result.average, ElementsAre());
}

// The second gradient is 3 + 0.5 * -1.5 and 4 + 0.5 * -2.
TEST_F(AsyncOptimizerTest, AddsL2OfTheParametersOfNow) {
  OptimizerSpec spec = sgd();
  spec.l2 = compute::L2{0.5f, ""};
  EXPECT_THAT(after_two_pushes(spec).parameters, ElementsAre(-3.75f, -5));
}

TEST_F(AsyncOptimizerTest, ClipsEachPushByItsValues) {
  OptimizerSpec spec = sgd();
  spec.clip_value = 3.5f;
  EXPECT_THAT(after_two_pushes(spec).parameters, ElementsAre(-3, -3));
}

// The norm of the mean gradient is 5.
TEST_F(AsyncOptimizerTest, ClipsEachPushByItsNorm) {
  OptimizerSpec spec = sgd();
  spec.clip_norm = 2.5f;
  EXPECT_THAT(after_two_pushes(spec).parameters, ElementsAre(0, 0));
}

// The average goes from 3 and 4 a quarter of the way to 0 and 0, and then to -3 and -4.
TEST_F(AsyncOptimizerTest, AveragesTheParametersAfterEachPush) {
  OptimizerSpec spec = sgd();
  spec.average = 0.75;
  const Result result = after_two_pushes(spec);
  EXPECT_THAT(result.parameters, ElementsAre(-3, -4));
  EXPECT_THAT(result.average, ElementsAre(2.25f * 0.75f - 0.75f, 3 * 0.75f - 1));
}

}  // namespace
}  // namespace muster::ps
