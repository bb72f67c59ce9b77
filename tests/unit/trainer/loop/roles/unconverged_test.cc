#include "trainer/loop/roles/unconverged.h"

#include <gmock/gmock.h>

namespace muster::loop {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

compute::ParameterLayout layout_of(compute::Segment segment, float momentum) {
  compute::ParameterTensor kernel, mean;
  kernel.name = "kernel";
  kernel.shape = {2};
  mean.name = "mean";
  mean.shape = {2};
  mean.segment = segment;
  mean.state_momentum = momentum;
  return compute::ParameterLayout({kernel, mean});
}

TEST(UnconvergedTest, AreStatisticsThatAreStillWhatTheyBeganWith) {
  const auto layout = layout_of(compute::Segment::state, 0.99f);
  spec::TrainingSpec spec;
  EXPECT_THAT(unconverged_averages(spec, layout, 230), IsEmpty());
  EXPECT_THAT(unconverged_averages(spec, layout, 30),
              ElementsAre(AllOf(HasSubstr("batch normalization: after 30 steps"),
                                HasSubstr("a momentum of 0.99 "), HasSubstr(" 74 % "),
                                HasSubstr("a momentum of at most 0.9261"))));
  EXPECT_THAT(unconverged_averages(spec, layout, 0), ElementsAre(HasSubstr(" 100 % ")));
  spec.initialize_from = "weights.safetensors";
  EXPECT_THAT(unconverged_averages(spec, layout, 30), IsEmpty());
}

TEST(UnconvergedTest, AreAveragesOfTheWeights) {
  const auto layout = layout_of(compute::Segment::state, 0);
  spec::TrainingSpec spec;
  EXPECT_THAT(unconverged_averages(spec, layout, 0), IsEmpty());
  spec.optimizer.average = 0.9999;
  EXPECT_THAT(unconverged_averages(spec, layout, 25'000), IsEmpty());
  spec.initialize_from = "weights.safetensors";  // a head that is new began with random numbers
  EXPECT_THAT(unconverged_averages(spec, layout, 300),
              ElementsAre(AllOf(HasSubstr("optimizer.ema"), HasSubstr("after 300 steps"),
                                HasSubstr("a decay of 0.9999 "), HasSubstr(" 97 % "))));
}

TEST(UnconvergedTest, IsNothingThatIsFrozen) {
  const auto layout = layout_of(compute::Segment::frozen, 0.99f);
  EXPECT_THAT(unconverged_averages({}, layout, 1), IsEmpty());
}

}  // namespace
}  // namespace muster::loop
