#include "trainer/compute/cpu/whole_update.h"

#include <gtest/gtest.h>

#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/initialize.h"

namespace muster::compute::cpu {
namespace {

TEST(WholeUpdate, HasTheBitsOfOneThreadForAnyNumber) {
  const ParameterLayout layout = make_layout(testing::two_branches());
  const auto optimizer = Optimizer::create(Lamb{}, layout);
  UpdateArguments arguments;
  arguments.inverse_weight = arguments.inverse_rows = 0.25f;
  std::vector<std::vector<float>> found;
  for (const int threads : {0, 1, 2, 3, 7}) {  // 0: by the optimizer alone
    Floats parameters(layout.size()), gradients(layout.size()), m(layout.size()), v(layout.size());
    initialize_parameters(layout, 3, parameters);
    const std::vector<std::span<float>> slots{m, v};
    WholeUpdate update(layout);
    host::Team team(std::max(threads, 1), false);
    for (arguments.t = 1; arguments.t <= 3; ++arguments.t) {
      initialize_parameters(layout, 10 + arguments.t, gradients);
      if (threads == 0)
        optimizer->apply({0, layout.size()}, arguments, parameters, gradients, slots);
      else
        update.run(team, *optimizer, arguments, parameters, gradients, slots);
    }
    found.emplace_back(parameters.begin(), parameters.end());
    for (const Floats& slot : {m, v})
      found.back().insert(found.back().end(), slot.begin(), slot.end());
    EXPECT_EQ(found.back(), found.front()) << threads;
  }
}

}  // namespace
}  // namespace muster::compute::cpu
