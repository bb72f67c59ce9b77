#include "trainer/compute/step_memory.h"

#include <gtest/gtest.h>

#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/models/catalogue.h"

namespace muster::compute::testing {
namespace {

// The estimate is compared with what the engine has allocated, and with parameters, gradients and
// slots. It leaves out the tiles that threads work on.
TEST(StepMemory, IsNearWhatTheEngineHas) {
  ModelOptions options;
  options.classes = 10;
  for (const std::string name : {"ssd-mobilenet-v1", "mobilenet-v1", "mnist-cnn"}) {
    ModelSpec model = find_model(name, options).value();
    if (model.input_shape.empty()) model.input_shape = {224, 224, 3};
    for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
      if (precision == Precision::bfloat16 && name == "mnist-cnn") continue;
      const auto engine = cpu_engine(model, 8, 2, "", precision);
      const OptimizerSpec optimizer = RmsProp{};
      const auto buffers = static_cast<int64_t>(4 * engine->layout().size() * sizeof(float));
      const auto has = static_cast<double>(engine->arena_bytes() + buffers);
      const auto estimate =
          static_cast<double>(step_memory(build_graph(model), 8, optimizer, precision, 2));
      EXPECT_LT(estimate, has) << name;
      // With bfloat16 threads have tiles of floats beside the values.
      EXPECT_GT(estimate, (precision == Precision::float32 ? 0.8 : 0.6) * has) << name;
    }
  }
}

}  // namespace
}  // namespace muster::compute::testing
