#include "trainer/compute/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>

#include "common/error.h"
#include "tests/unit/trainer/compute/support.h"

namespace muster::compute::testing {
namespace {

using cpu::CpuEngine;

ModelSpec small() {
  return model(100,
               {dense("a", 257, Activation::relu), dense("b", 33, Activation::sigmoid),
                dense("c", 10, Activation::linear)},
               10);
}

std::vector<float> copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// A training run: engine, optimizer and its slots.
struct Trained {
  Trained(const ModelSpec& spec, int64_t max_rows, int threads, const std::string& set = "",
          const OptimizerSpec& rule = Adam{})
      : engine(testing::engine(spec, max_rows, threads, set)),
        optimizer(Optimizer::create(rule, engine->layout())),
        storage(optimizer->slot_names().size(), std::vector<float>(engine->layout().size())) {
    initialize(*engine);
    for (auto& slot : storage) slots.push_back(slot);
  }
  LossSums step(const Batch& batch) {
    UpdateArguments update;
    update.t = ++t;
    return engine->train(batch, *optimizer, update, slots);
  }
  // compute_gradients, then apply over the ranges one by one.
  LossSums step_by_ranges(const Batch& batch, const std::vector<Range>& ranges) {
    const LossSums sums = engine->compute_gradients(batch);
    UpdateArguments update;
    update.t = ++t;
    update.inverse_rows = 1.0f / static_cast<float>(batch.rows);
    for (const Range& range : ranges) {
      std::vector<std::span<float>> pieces;
      for (auto& slot : storage)
        pieces.push_back(std::span(slot).subspan(range.begin, range.size()));
      optimizer->apply(range, update, engine->parameters().subspan(range.begin, range.size()),
                       engine->gradients().subspan(range.begin, range.size()), pieces);
    }
    return sums;
  }

  std::unique_ptr<CpuEngine> engine;
  std::unique_ptr<Optimizer> optimizer;
  std::vector<std::vector<float>> storage;
  std::vector<std::span<float>> slots;
  uint64_t t = 0;
};

TEST(Engine, AllocatesNothingInAStep) {
  const OwnedBatch batch(32, 23, 5, 0.3);
  Trained run(two_branches(), 32, 2);
  const Batch all = batch.all(), some = batch.first(9);
  std::vector<float> outputs(32 * 5);
  for (int i = 0; i < 2; ++i) run.step(all);
  const int64_t before = allocations();
  for (int i = 0; i < 3; ++i) {
    run.step(all);
    run.step(some);
    run.engine->compute_gradients(all);
    run.engine->evaluate(some);
    run.engine->predict(all, outputs);
  }
  EXPECT_EQ(allocations() - before, 0);
}

TEST(Engine, GivesTheSameBitsEachTime) {
  const OwnedBatch batch(33, 100, 10, 0.5);
  for (int threads : {1, 2, 3}) {
    Trained first(small(), 33, threads), second(small(), 33, threads);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(first.step(batch.all()).loss, second.step(batch.all()).loss);
    }
    EXPECT_EQ(copy(first.engine->parameters()), copy(second.engine->parameters()));
  }
}

TEST(Engine, GivesTheSameBitsWithAndWithoutTheZeros) {
  const OwnedBatch batch(33, 100, 10, 0.3);
  for (const std::string& set : instruction_sets()) {
    for (int threads : {1, 2}) {
      Trained dense(small(), 40, threads, set), sparse(small(), 40, threads, set);
      dense.engine->set_sparsity(CpuEngine::Sparsity::never);
      sparse.engine->set_sparsity(CpuEngine::Sparsity::always);
      for (int64_t rows : {33, 1, 16, 33}) {
        EXPECT_EQ(dense.step(batch.first(rows)).loss, sparse.step(batch.first(rows)).loss) << set;
      }
      EXPECT_EQ(copy(dense.engine->parameters()), copy(sparse.engine->parameters())) << set;
    }
  }
}

TEST(Engine, AgreesToRoundingAcrossThreadsAndInstructionSets) {
  const OwnedBatch batch(32, 100, 10, 0.6);
  const auto reference = engine(small(), 32, 1, "generic");
  initialize(*reference);
  const LossSums expected = reference->compute_gradients(batch.all());
  for (const std::string& set : instruction_sets()) {
    for (int threads : {1, 2, 3, 7}) {
      const auto other = engine(small(), 32, threads, set);
      initialize(*other);
      const LossSums sums = other->compute_gradients(batch.all());
      EXPECT_NEAR(sums.loss, expected.loss, 1e-5 * expected.loss);
      EXPECT_EQ(sums.correct, expected.correct);
      for (size_t i = 0; i < reference->gradients().size(); ++i) {
        ASSERT_NEAR(other->gradients()[i], reference->gradients()[i], 2e-5) << set << threads;
      }
    }
  }
}

TEST(Engine, TrainsThroughAnyShardsToTheSameBits) {
  const OwnedBatch batch(32, 23, 5);
  for (const OptimizerSpec& rule : {OptimizerSpec{Sgd{0.9f, true}}, OptimizerSpec{AdamW{}}}) {
    Trained whole(two_branches(), 32, 2, "", rule), shards(two_branches(), 32, 2, "", rule);
    Trained fused(two_branches(), 32, 2, "", rule);
    const std::vector<float> start = copy(whole.engine->parameters());
    const ParameterLayout& layout = whole.engine->layout();
    for (int64_t rows : {32, 32, 11}) {  // a remainder at the end
      const double loss = whole.step_by_ranges(batch.first(rows), layout.partition(1)).loss;
      EXPECT_EQ(loss, shards.step_by_ranges(batch.first(rows), layout.partition(3)).loss);
      EXPECT_EQ(loss, fused.step(batch.first(rows)).loss);
    }
    EXPECT_EQ(copy(whole.engine->parameters()), copy(shards.engine->parameters()));
    EXPECT_EQ(whole.storage, shards.storage);
    EXPECT_EQ(copy(whole.engine->parameters()), copy(fused.engine->parameters()));
    EXPECT_EQ(whole.storage, fused.storage);
    for (const ParameterTensor& tensor : layout.tensors()) {
      const bool same = whole.engine->parameters()[tensor.offset] == start[tensor.offset];
      EXPECT_EQ(same, tensor.segment == Segment::frozen) << tensor.name;
    }
  }
}

TEST(Engine, HandsTheStateSegmentTheBatchsStatistics) {
  const ModelSpec spec =
      model(3, {layer("n", BatchNormalization{}), dense("y", 2, Activation::linear)}, 2);
  const OwnedBatch batch(6, 3, 2);
  const auto made = engine(spec, 8, 2);
  initialize_parameters(made->layout(), 1, made->parameters());
  made->compute_gradients(batch.all());
  for (size_t c = 0; c < 3; ++c) {
    double mean = 0, squares = 0;
    for (size_t r = 0; r < 6; ++r) mean += double(batch.values[r * 3 + c]) / 6;
    for (size_t r = 0; r < 6; ++r) squares += std::pow(double(batch.values[r * 3 + c]) - mean, 2);
    const float* g = made->gradients().data();
    EXPECT_NEAR(g[made->layout().find("n/moving_mean").offset + c], 6 * mean, 1e-5);
    EXPECT_NEAR(g[made->layout().find("n/moving_variance").offset + c], 6 * squares / 5, 1e-5);
  }
}

// What it says to be complete is not written again.
TEST(Engine, SaysHowManyGradientsAreComplete) {
  for (const ModelSpec& spec : {small(), two_branches()}) {
    for (const int threads : {1, 3}) {
      const auto made = engine(spec, 16, threads);
      initialize(*made);
      const OwnedBatch batch(16, spec.input_shape[0], made->output_count());
      std::mutex mutex;
      std::vector<std::vector<float>> seen;
      for (int step = 0; step < 3; ++step) {
        seen.clear();
        std::ranges::fill(made->gradients(), std::nanf(""));
        made->compute_gradients(batch.all(), [&](size_t end) {
          const std::lock_guard lock(mutex);
          seen.push_back(copy(made->gradients().first(end)));
        });
        ASSERT_GT(seen.size(), 1u);
        std::ranges::sort(seen, {}, &std::vector<float>::size);
        EXPECT_EQ(seen.back().size(), made->layout().segment(Segment::trainable).end);
        for (const std::vector<float>& prefix : seen)
          EXPECT_TRUE(same_bits(prefix, made->gradients().first(prefix.size()))) << prefix.size();
      }
    }
  }
}

TEST(Engine, EvaluatesWithMovingStatisticsAndWithoutDropout) {
  ModelSpec spec = two_branches();
  spec.layers.insert(spec.layers.begin() + 1, layer("drop", Dropout{0.5f}, {"stem"}));
  const OwnedBatch batch(9, 23, 5);
  const auto made = engine(spec, 16, 2);
  initialize(*made);
  const double expected =
      reference_loss(spec, made->layout(), to_double(made->parameters()), batch.all(), false);
  EXPECT_NEAR(made->evaluate(batch.all()).loss, expected, 1e-5 * expected);
}

TEST(Engine, SumsOverHalvesAreTheWhole) {
  const OwnedBatch batch(31, 100, 10);
  const auto made = engine(small(), 31, 2);
  initialize(*made);
  LossSums sums = made->compute_gradients(batch.part(0, 15));
  std::vector<float> gradients = copy(made->gradients());
  sums += made->compute_gradients(batch.part(15, 16));
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i] += made->gradients()[i];
  const LossSums whole = made->compute_gradients(batch.all());
  EXPECT_NEAR(sums.loss, whole.loss, 1e-5 * whole.loss);
  EXPECT_EQ(sums.correct, whole.correct);
  EXPECT_EQ(sums.rows, 31);
  for (size_t i = 0; i < gradients.size(); ++i)
    ASSERT_NEAR(gradients[i], made->gradients()[i], 2e-5);
}

TEST(Engine, TakesNoRowsAsNoGradients) {
  const OwnedBatch batch(4, 100, 10);
  Trained run(small(), 4, 2);
  run.step(batch.all());
  const std::vector<float> before = copy(run.engine->parameters());
  const LossSums sums = run.engine->compute_gradients(batch.first(0));
  EXPECT_EQ(sums.loss, 0);
  EXPECT_EQ(sums.rows, 0);
  EXPECT_EQ(copy(run.engine->gradients()), std::vector<float>(before.size()));
  run.step(batch.first(0));
  EXPECT_EQ(copy(run.engine->parameters()), before);
}

TEST(Engine, ReadsBytesAsItReadsFloats) {
  const OwnedBatch batch(7, 100, 10);
  std::vector<uint8_t> bytes(700);
  std::vector<float> floats(700);
  std::vector<const void*> byte_rows, float_rows;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = i % 3 ? 0 : static_cast<uint8_t>(fixture_bits(3, i));
    floats[i] = static_cast<float>(bytes[i]) * (1.0f / 255.0f) + 0.5f;
  }
  for (size_t r = 0; r < 7; ++r) {
    byte_rows.push_back(&bytes[r * 100]);
    float_rows.push_back(&floats[r * 100]);
  }
  for (const std::string& set : instruction_sets()) {
    const auto made = engine(small(), 7, 2, set);
    initialize(*made);
    Batch batch_of = batch.all();
    batch_of.features = float_rows;
    const double expected = made->evaluate(batch_of).loss;
    batch_of.features = byte_rows;
    batch_of.type = ElementType::uint8;
    batch_of.scale = 1.0f / 255.0f;
    batch_of.offset = 0.5f;
    EXPECT_NEAR(made->evaluate(batch_of).loss, expected, 1e-5 * expected) << set;
  }
}

TEST(Engine, PredictsProbabilitiesOrPlainOutputs) {
  const OwnedBatch batch(5, 100, 10);
  const auto made = engine(small(), 5, 2);
  initialize(*made);
  std::vector<float> outputs(50);
  made->predict(batch.all(), outputs);
  double loss = 0;
  for (size_t r = 0; r < 5; ++r) {
    EXPECT_NEAR(std::accumulate(&outputs[r * 10], &outputs[r * 10] + 10, 0.0), 1.0, 1e-5);
    loss -= std::log(double(outputs[r * 10 + size_t(batch.labels[r])]));
  }
  EXPECT_NEAR(loss, made->evaluate(batch.all()).loss, 1e-4);

  const auto plain =
      engine(model(2, {dense("y", 1, Activation::linear)}, 1, Loss::mean_squared_error), 5);
  plain->parameters()[plain->layout().find("y/bias").offset] = 3.0f;
  const OwnedBatch other(5, 2, 1);
  plain->predict(other.all(), std::span(outputs).first(5));
  EXPECT_EQ(outputs[4], 3.0f);
}

TEST(Engine, RefusesBatchesThatDoNotFit) {
  const OwnedBatch batch(9, 100, 10);
  const auto made = engine(small(), 8);
  EXPECT_THROW(made->compute_gradients(batch.all()), Invalid);
  Batch bad = batch.first(8);
  bad.labels = std::span(batch.labels).first(7);
  EXPECT_THROW(made->evaluate(bad), Invalid);
  std::vector<int32_t> labels(8, 10);
  bad.labels = labels;
  EXPECT_THAT([&] { made->evaluate(bad); },
              ::testing::ThrowsMessage<Invalid>(::testing::HasSubstr("found 10")));
  std::vector<float> little(79);
  EXPECT_THROW(made->predict(batch.first(8), little), Invalid);
}

TEST(Engine, RefusesOptionsItDoesNotHave) {
  EngineOptions options;
  options.device = "tpu";
  EXPECT_THROW(Engine::create(small(), options), Invalid);
  options = {};
  options.max_rows = 0;
  EXPECT_THROW(Engine::create(small(), options), Invalid);
  options = {};
  options.threads = -1;
  EXPECT_THROW(Engine::create(small(), options), Invalid);
  EXPECT_THROW(cpu::select_kernels("mmx"), Invalid);
}

TEST(Engine, ShowsNotANumberInTheLoss) {
  const OwnedBatch batch(4, 100, 10);
  const auto made = engine(small(), 4, 2);
  initialize(*made);
  made->parameters()[made->layout().find("c/bias").offset + 3] = std::nanf("");
  EXPECT_TRUE(std::isnan(made->evaluate(batch.all()).loss));
  EXPECT_TRUE(std::isnan(made->compute_gradients(batch.all()).loss));
}

TEST(Engine, ChoosesAtLeastOneThreadAndNotMoreThanTheBudget) {
  EngineOptions options;
  options.max_rows = 1;
  EXPECT_EQ(Engine::create(model(1, {dense("y", 1, Activation::linear)}, 1), options)->threads(),
            1);
  const auto wide = build_graph(model(4096, {dense("y", 4096, Activation::linear)}, 4096));
  EXPECT_EQ(cpu::worthwhile_threads(wide, 64, 16), 16);
}

// One dropout of ones: what comes out is the mask.
std::vector<float> mask(float rate, const std::vector<uint64_t>& positions, uint64_t epoch,
                        int threads, const std::string& set) {
  const int64_t width = 200;
  ModelSpec spec = model(width, {layer("drop", Dropout{rate}), dense("y", 1, Activation::linear)},
                         1, Loss::mean_squared_error);
  std::get<Dense>(spec.layers[1].kind).use_bias = false;
  OwnedBatch batch(1, width, 1);
  std::fill(batch.values.begin(), batch.values.end(), 1.0f);
  batch.targets[0] = -0.5f;
  const auto made = engine(spec, 1, threads, set);
  std::vector<float> masks;
  for (uint64_t position : positions) {
    batch.positions[0] = position;
    Batch one = batch.all();
    one.epoch = epoch;
    made->compute_gradients(one);  // with zero weights: 2 (0 + 0.5) x mask
    const auto kernel = made->layout().find("y/kernel");
    const auto g = made->gradients().subspan(kernel.offset, kernel.count);
    masks.insert(masks.end(), g.begin(), g.end());
  }
  return masks;
}

TEST(Dropout, MaskIsAFunctionOfEpochAndPositionOnly) {
  const std::vector<float> expected = mask(0.4f, {5, 6}, 0, 1, "generic");
  for (const std::string& set : instruction_sets()) {
    for (int threads : {1, 3}) EXPECT_EQ(mask(0.4f, {5, 6}, 0, threads, set), expected);
  }
  std::vector<float> swapped = mask(0.4f, {6, 5}, 0, 2, "");
  std::rotate(swapped.begin(), swapped.begin() + 200, swapped.end());
  EXPECT_EQ(swapped, expected);
  EXPECT_NE(mask(0.4f, {5, 6}, 1, 1, ""), expected);
}

TEST(Dropout, KeepsTheExpectedShareAndScalesIt) {
  std::vector<uint64_t> positions(100);
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<float> kept = mask(0.4f, positions, 0, 1, "");
  const auto share =
      double(std::count_if(kept.begin(), kept.end(), [](float x) { return x != 0; })) /
      double(kept.size());
  EXPECT_NEAR(share, 0.6, 0.02);
  for (float x : kept) EXPECT_TRUE(x == 0.0f || std::abs(x - 1.0f / 0.6f) < 1e-6f) << x;
}

TEST(Dropout, GradientPassesTheSameMask) {
  ModelSpec spec = model(20,
                         {dense("a", 40, Activation::sigmoid), layer("drop", Dropout{0.5f}),
                          dense("y", 3, Activation::linear)},
                         3);
  const OwnedBatch batch(8, 20, 3);
  const auto made = engine(spec, 8, 2);
  initialize(*made);
  made->compute_gradients(batch.all());
  const std::vector<float> gradients = copy(made->gradients());
  const auto& kernel = made->layout().find("a/kernel");
  for (size_t i = 0; i < kernel.count; i += 97) {
    float& p = made->parameters()[kernel.offset + i];
    const float kept = p;
    p = kept + 0.05f;
    const double above = made->compute_gradients(batch.all()).loss;
    p = kept - 0.05f;
    const double below = made->compute_gradients(batch.all()).loss;
    p = kept;
    EXPECT_NEAR((above - below) / 0.1, gradients[kernel.offset + i], 2e-3);
  }
}

}  // namespace
}  // namespace muster::compute::testing
