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
#include "tests/unit/trainer/extended.h"
#include "trainer/compute/cpu/worthwhile_threads.h"
#include "trainer/compute/cuda/gpus.h"
#include "trainer/compute/hosted_engine.h"
#include "trainer/compute/initialize.h"
#include "trainer/compute/other_parameters.h"
#include "trainer/host/instruction_set.h"

namespace muster::compute::testing {
namespace {

using cpu::CpuEngine;

ModelSpec small() {
  return model(100,
               {dense("a", 257, Activation::relu), dense("b", 33, Activation::sigmoid),
                dense("c", 10, Activation::linear)},
               10);
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// A training run: engine, optimizer and its slots.
struct Trained {
  explicit Trained(std::unique_ptr<Engine> made, const OptimizerSpec& rule = Adam{})
      : engine(std::move(made)), optimizer(Optimizer::create(rule, engine->layout())) {
    initialize(*engine);
    storage = allocate_slots(*engine, *optimizer);
    for (const auto& slot : storage) slots.push_back(slot.get());
  }
  LossSums step(const Batch& batch) {
    UpdateArguments update;
    update.t = ++t;
    return engine->train(batch, *optimizer, update, slots);
  }
  // Does compute_gradients, and then applies the optimizer to the ranges one by one, on the host.
  LossSums step_by_ranges(const Batch& batch, const std::vector<Range>& ranges) {
    const LossSums sums = engine->compute_gradients(batch);
    UpdateArguments update;
    update.t = ++t;
    update.divide_by(sums);
    HostView parameters(engine->parameters());
    HostView gradients(engine->gradients());
    std::vector<HostView> views;
    views.reserve(storage.size());
    for (auto& slot : storage) views.emplace_back(*slot);
    for (const Range& range : ranges) {
      std::vector<std::span<float>> pieces;
      for (HostView& view : views)
        pieces.push_back(view.values().subspan(range.begin, range.size()));
      optimizer->apply(range, update, parameters.values().subspan(range.begin, range.size()),
                       gradients.values().subspan(range.begin, range.size()), pieces);
    }
    parameters.store();
    for (HostView& view : views) view.store();
    return sums;
  }
  std::vector<std::vector<float>> slot_values() const {
    std::vector<std::vector<float>> all;
    for (const auto& slot : storage) all.push_back(values(*slot));
    return all;
  }

  std::unique_ptr<Engine> engine;
  std::unique_ptr<Optimizer> optimizer;
  std::vector<std::unique_ptr<Memory>> storage;
  std::vector<Memory*> slots;
  uint64_t t = 0;
};

// All engines share these tests.
class EngineTest : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << kNoGpu;
  }
  static std::unique_ptr<Engine> engine(const ModelSpec& spec, int64_t max_rows, int threads = 1) {
    return testing::engine(GetParam(), spec, max_rows, threads);
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, EngineTest, ::testing::ValuesIn(backends()),
                         [](const auto& info) { return name_of(info.param); });

TEST(CpuEngineTest, AllocatesNothingInAStep) {
  const OwnedBatch batch(32, 23, 5, 0.3);
  const Batch all = batch.all(), some = batch.first(9);
  std::vector<float> outputs(32 * 5);
  for (const OptimizerSpec& rule :
       {OptimizerSpec{Adam{}}, OptimizerSpec{Lamb{}}, extended(RmsProp{})}) {
    Trained run(cpu_engine(two_branches(), 32, 2), rule);
    for (int i = 0; i < 2; ++i) run.step(all);
    const int64_t before = allocations();
    for (int i = 0; i < 3; ++i) {
      run.step(all);
      run.step(some);
      run.engine->compute_gradients(all);
      run.engine->evaluate(some);
      run.engine->evaluate(all, outputs);
      run.engine->predict(all, outputs);
    }
    EXPECT_EQ(allocations() - before, 0);
  }
}

TEST_P(EngineTest, GivesTheSameBitsEachTime) {
  const OwnedBatch batch(33, 100, 10, 0.5);
  for (int threads : {1, 2, 3}) {
    Trained first(engine(small(), 33, threads)), second(engine(small(), 33, threads));
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(first.step(batch.all()).loss, second.step(batch.all()).loss);
    }
    EXPECT_EQ(values(first.engine->parameters()), values(second.engine->parameters()));
  }
}

TEST(CpuEngineTest, GivesTheSameBitsWithAndWithoutTheZeros) {
  const OwnedBatch batch(33, 100, 10, 0.3);
  for (const std::string& set : instruction_sets()) {
    for (int threads : {1, 2}) {
      auto without = cpu_engine(small(), 40, threads, set);
      without->set_sparsity(CpuEngine::Sparsity::never);
      auto with = cpu_engine(small(), 40, threads, set);
      with->set_sparsity(CpuEngine::Sparsity::always);
      Trained dense(std::move(without)), sparse(std::move(with));
      for (int64_t rows : {33, 1, 16, 33}) {
        EXPECT_EQ(dense.step(batch.first(rows)).loss, sparse.step(batch.first(rows)).loss) << set;
      }
      EXPECT_EQ(values(dense.engine->parameters()), values(sparse.engine->parameters())) << set;
    }
  }
}

TEST(CpuEngineTest, AgreesToRoundingAcrossThreadsAndInstructionSets) {
  const OwnedBatch batch(32, 100, 10, 0.6);
  const auto reference = cpu_engine(small(), 32, 1, "generic");
  initialize(*reference);
  const LossSums expected = reference->compute_gradients(batch.all());
  for (const std::string& set : instruction_sets()) {
    for (int threads : {1, 2, 3, 7}) {
      const auto other = cpu_engine(small(), 32, threads, set);
      initialize(*other);
      const LossSums sums = other->compute_gradients(batch.all());
      EXPECT_NEAR(sums.loss, expected.loss, 1e-5 * expected.loss);
      EXPECT_EQ(sums.terms, expected.terms);
      const auto found = values(other->gradients()), wanted = values(reference->gradients());
      for (size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_NEAR(found[i], wanted[i], 2e-5) << set << threads;
      }
    }
  }
}

TEST_P(EngineTest, TrainsThroughAnyShardsToTheSameBits) {
  const OwnedBatch batch(32, 23, 5);
  OptimizerSpec clipped = extended(RmsProp{});
  clipped.clip_norm.reset();
  clipped.clip_value = 0.01f;  // part of the backward pass
  for (const OptimizerSpec& rule :
       {OptimizerSpec{Sgd{0.9f, true}}, OptimizerSpec{AdamW{}}, OptimizerSpec{Lamb{}}, clipped,
        extended(Sgd{}), extended(RmsProp{})}) {
    Trained whole(engine(two_branches(), 32, 2), rule), shards(engine(two_branches(), 32, 2), rule);
    Trained fused(engine(two_branches(), 32, 2), rule);
    const std::vector<float> start = values(whole.engine->parameters());
    const ParameterLayout& layout = whole.engine->layout();
    for (int64_t rows : {32, 32, 11}) {  // a remainder at the end
      const double loss =
          whole.step_by_ranges(batch.first(rows), shard_ranges(rule, layout, 1)).loss;
      EXPECT_EQ(loss, shards.step_by_ranges(batch.first(rows), shard_ranges(rule, layout, 3)).loss);
      EXPECT_EQ(loss, fused.step(batch.first(rows)).loss);
    }
    EXPECT_EQ(values(whole.engine->parameters()), values(shards.engine->parameters()));
    EXPECT_EQ(whole.slot_values(), shards.slot_values());
    EXPECT_EQ(values(whole.engine->parameters()), values(fused.engine->parameters()));
    EXPECT_EQ(whole.slot_values(), fused.slot_values());
    const std::vector<float> end = values(whole.engine->parameters());
    for (const ParameterTensor& tensor : layout.tensors()) {
      const bool same = end[tensor.offset] == start[tensor.offset];
      EXPECT_EQ(same, tensor.segment == Segment::frozen) << tensor.name;
    }
  }
}

// As TensorFlow's users of the TF Object Detection API expect: not depthwise kernels, biases and
// normalization.
TEST(Regularization, IsOfTheKernelsOfDenseAndConvolutionLayers) {
  Conv2d convolution;
  convolution.filters = 2;
  ModelSpec spec = model(48,
                         {layer("c", convolution), layer("d", DepthwiseConv2d{}),
                          layer("n", BatchNormalization{}), dense("y", 2, Activation::linear)},
                         2);
  spec.input_shape = {8, 8, 3};
  const ParameterLayout layout = make_layout(spec);
  std::vector<std::string> names;
  for (const ParameterTensor& tensor : layout.tensors())
    if (tensor.regularized) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"y/kernel", "c/kernel"}));
}

TEST_P(EngineTest, EvaluatesWithOtherParametersAndKeepsItsOwn) {
  const OwnedBatch batch(9, 100, 10);
  Trained run(engine(small(), 16, 2)), expected(engine(small(), 16, 2));
  run.step(batch.all());
  expected.step(batch.all());
  const auto other = engine(small(), 16, 2);
  HostView there(other->parameters());
  initialize_parameters(other->layout(), 77, there.values());
  there.store();
  Floats weights(other->layout().size());
  std::ranges::copy(there.values(), weights.begin());
  {
    const OtherParameters borrowed(*run.engine, weights);
    EXPECT_EQ(run.engine->evaluate(batch.all()).loss, other->evaluate(batch.all()).loss);
  }
  EXPECT_EQ(run.step(batch.all()).loss, expected.step(batch.all()).loss);
  EXPECT_EQ(values(run.engine->parameters()), values(expected.engine->parameters()));
  EXPECT_EQ(values(other->parameters()), std::vector<float>(weights.begin(), weights.end()));
}

TEST_P(EngineTest, HandsTheStateSegmentTheBatchsStatistics) {
  const ModelSpec spec =
      model(3, {layer("n", BatchNormalization{}), dense("y", 2, Activation::linear)}, 2);
  const OwnedBatch batch(6, 3, 2);
  const auto made = engine(spec, 8, 2);
  HostView parameters(made->parameters());
  initialize_parameters(made->layout(), 1, parameters.values());
  parameters.store();
  made->compute_gradients(batch.all());
  const std::vector<float> g = values(made->gradients());
  for (size_t c = 0; c < 3; ++c) {
    double mean = 0, squares = 0;
    for (size_t r = 0; r < 6; ++r) mean += double(batch.values[r * 3 + c]) / 6;
    for (size_t r = 0; r < 6; ++r) squares += std::pow(double(batch.values[r * 3 + c]) - mean, 2);
    EXPECT_NEAR(g[made->layout().find("n/moving_mean").offset + c], 6 * mean, 1e-5);
    EXPECT_NEAR(g[made->layout().find("n/moving_variance").offset + c], 6 * squares / 5, 1e-5);
  }
}

// Gradients reported as complete are not written again.
TEST_P(EngineTest, SaysHowManyGradientsAreComplete) {
  for (const ModelSpec& spec : {small(), two_branches()}) {
    for (const int threads : {1, 3}) {
      const auto made = engine(spec, 16, threads);
      initialize(*made);
      const OwnedBatch batch(16, spec.input_shape[0], made->output_count());
      std::mutex mutex;
      std::vector<std::vector<float>> seen;
      for (int step = 0; step < 3; ++step) {
        seen.clear();
        put(made->gradients(), 0, std::vector<float>(made->layout().size(), std::nanf("")));
        made->compute_gradients(batch.all(), [&](size_t end) {
          const std::lock_guard lock(mutex);
          seen.emplace_back(end);
          made->gradients().read({0, end}, seen.back()).wait();
        });
        ASSERT_GT(seen.size(), 1u);
        std::ranges::sort(seen, {}, &std::vector<float>::size);
        EXPECT_EQ(seen.back().size(), made->layout().segment(Segment::trainable).end);
        const std::vector<float> all = values(made->gradients());
        for (const std::vector<float>& prefix : seen)
          EXPECT_TRUE(same_bits(prefix, std::span(all).first(prefix.size()))) << prefix.size();
      }
    }
  }
}

TEST_P(EngineTest, EvaluatesWithMovingStatisticsAndWithoutDropout) {
  ModelSpec spec = two_branches();
  spec.layers.insert(spec.layers.begin() + 1, layer("drop", Dropout{0.5f}, {"stem"}));
  const OwnedBatch batch(9, 23, 5);
  const auto made = engine(spec, 16, 2);
  initialize(*made);
  const double expected = reference_loss(spec, made->layout(),
                                         to_double(values(made->parameters())), batch.all(), false);
  EXPECT_NEAR(made->evaluate(batch.all()).loss, expected, 1e-5 * expected);
}

TEST_P(EngineTest, SumsOverHalvesAreTheWhole) {
  const OwnedBatch batch(31, 100, 10);
  const auto made = engine(small(), 31, 2);
  initialize(*made);
  LossSums sums = made->compute_gradients(batch.part(0, 15));
  std::vector<float> gradients = values(made->gradients());
  sums += made->compute_gradients(batch.part(15, 16));
  const std::vector<float> second = values(made->gradients());
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i] += second[i];
  const LossSums whole = made->compute_gradients(batch.all());
  EXPECT_NEAR(sums.loss, whole.loss, 1e-5 * whole.loss);
  EXPECT_EQ(sums.terms, whole.terms);
  EXPECT_EQ(sums.rows, 31);
  const std::vector<float> at_once = values(made->gradients());
  for (size_t i = 0; i < gradients.size(); ++i) ASSERT_NEAR(gradients[i], at_once[i], 2e-5);
}

TEST_P(EngineTest, TakesNoRowsAsNoGradients) {
  const OwnedBatch batch(4, 100, 10);
  Trained run(engine(small(), 4, 2));
  run.step(batch.all());
  const std::vector<float> before = values(run.engine->parameters());
  const LossSums sums = run.engine->compute_gradients(batch.first(0));
  EXPECT_EQ(sums.loss, 0);
  EXPECT_EQ(sums.rows, 0);
  EXPECT_EQ(values(run.engine->gradients()), std::vector<float>(before.size()));
  run.step(batch.first(0));
  EXPECT_EQ(values(run.engine->parameters()), before);
}

TEST(CpuEngineTest, ReadsBytesAsItReadsFloats) {
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
    const auto made = cpu_engine(small(), 7, 2, set);
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

TEST_P(EngineTest, PredictsProbabilitiesOrPlainOutputs) {
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
      engine(model(2, {dense("y", 1, Activation::linear)}, 1, MeanSquaredError{}), 5);
  put(plain->parameters(), plain->layout().find("y/bias").offset, {3.0f});
  const OwnedBatch other(5, 2, 1);
  plain->predict(other.all(), std::span(outputs).first(5));
  EXPECT_EQ(outputs[4], 3.0f);
}

// The prediction is the softmax of the outputs that an evaluation returns.
TEST_P(EngineTest, GivesWhatTheLossMeetsWithAnEvaluation) {
  const OwnedBatch batch(7, 100, 10);
  const auto made = engine(small(), 9, 2);
  initialize(*made);
  std::vector<float> logits(90, -1.0f), predicted(70);
  const LossSums with = made->evaluate(batch.all(), logits);
  EXPECT_EQ(with, made->evaluate(batch.all()));
  made->predict(batch.all(), predicted);
  for (size_t row = 0; row < 7; ++row) {
    const float* y = &logits[row * 10];
    double sum = 0;
    for (size_t i = 0; i < 10; ++i) sum += std::exp(double(y[i]));
    for (size_t i = 0; i < 10; ++i)
      EXPECT_NEAR(std::exp(double(y[i])) / sum, double(predicted[row * 10 + i]), 1e-6);
  }
  EXPECT_EQ(logits[70], -1.0f) << "there are no further rows";
}

TEST_P(EngineTest, RefusesBatchesThatDoNotFit) {
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
  EXPECT_THROW(made->evaluate(batch.first(8), little), Invalid);
}

TEST(CpuEngineTest, RefusesOptionsItDoesNotHave) {
  EngineOptions options;
  options.device = {DeviceKind::cuda, cuda::gpu_count()};
  EXPECT_THROW(Engine::create(small(), options), Invalid);
  options = {};
  options.max_rows = 0;
  EXPECT_THROW(Engine::create(small(), options), Invalid);
  options = {};
  options.threads = -1;
  EXPECT_THROW(Engine::create(small(), options), Invalid);
  EXPECT_THROW(host::instruction_set("mmx"), Invalid);
}

TEST_P(EngineTest, ShowsNotANumberInTheLoss) {
  const OwnedBatch batch(4, 100, 10);
  const auto made = engine(small(), 4, 2);
  initialize(*made);
  put(made->parameters(), made->layout().find("c/bias").offset + 3, {std::nanf("")});
  EXPECT_TRUE(std::isnan(made->evaluate(batch.all()).loss));
  EXPECT_TRUE(std::isnan(made->compute_gradients(batch.all()).loss));
}

TEST(CpuEngineTest, ChoosesAtLeastOneThreadAndNotMoreThanTheBudget) {
  EngineOptions options;
  options.max_rows = 1;
  EXPECT_EQ(Engine::create(model(1, {dense("y", 1, Activation::linear)}, 1), options)->threads(),
            1);
  const auto wide = build_graph(model(4096, {dense("y", 4096, Activation::linear)}, 4096));
  EXPECT_EQ(cpu::worthwhile_threads(wide, 64, 16), 16);
}

TEST_P(EngineTest, ComputesInOtherMemoryOfItsDevice) {
  const OwnedBatch batch(8, 100, 10);
  const auto made = engine(small(), 8, 2), reference = engine(small(), 8, 2);
  initialize(*made, 1);
  initialize(*reference, 2);
  reference->compute_gradients(batch.all());
  const auto parameters = made->allocate(), gradients = made->allocate();
  EXPECT_EQ(values(*parameters), std::vector<float>(made->layout().size()));
  put(*parameters, 0, values(reference->parameters()));
  made->use(*parameters, gradients.get());
  made->compute_gradients(batch.all());
  EXPECT_EQ(values(*gradients), values(reference->gradients()));
  made->use_own();
  EXPECT_EQ(values(made->parameters()), values(reference->parameters()));
  EXPECT_NE(values(made->gradients()), values(reference->gradients()));
  HostMemory little(3);
  EXPECT_THROW(made->use(little, nullptr), Invalid);
}

TEST_P(EngineTest, ComputesForTheHostWithoutShowingWhereItsMemoryIs) {
  const OwnedBatch batch(8, 100, 10);
  const auto made = engine(small(), 8, 2), reference = engine(small(), 8, 2);
  initialize(*reference);
  reference->compute_gradients(batch.all());
  const std::vector<float> start = values(reference->parameters());
  const std::vector<float> expected = values(reference->gradients());
  Floats parameters(start.begin(), start.end()), gradients(start.size());
  {
    HostedEngine hosted(*made);
    hosted.load(parameters);
    std::mutex mutex;
    size_t complete = 0;
    const LossSums sums = hosted.compute_gradients(batch.all(), gradients, [&](size_t end) {
      const std::lock_guard lock(mutex);
      complete = std::max(complete, end);
      EXPECT_TRUE(same_bits(std::span(gradients).first(end), std::span(expected).first(end)));
    });
    EXPECT_EQ(sums.rows, 8);
    EXPECT_EQ(complete, made->layout().segment(Segment::trainable).end);
    EXPECT_TRUE(same_bits(gradients, expected));
    parameters[0] += 1.0f;
    hosted.load(parameters);
    EXPECT_EQ(values(made->parameters())[0], parameters[0]);
  }
  const std::vector<float> end(parameters.begin(), parameters.end());
  parameters.assign(parameters.size(), std::nanf(""));
  EXPECT_EQ(values(made->parameters()), end);
}

// Applies one dropout to ones, so that the output is the mask.
std::vector<float> mask(float rate, const std::vector<uint64_t>& positions, uint64_t epoch,
                        int threads, const std::string& set) {
  const int64_t width = 200;
  ModelSpec spec = model(width, {layer("drop", Dropout{rate}), dense("y", 1, Activation::linear)},
                         1, MeanSquaredError{});
  std::get<Dense>(spec.layers[1].kind).use_bias = false;
  OwnedBatch batch(1, width, 1);
  std::fill(batch.values.begin(), batch.values.end(), 1.0f);
  batch.targets[0] = -0.5f;
  const auto made = cpu_engine(spec, 1, threads, set);
  std::vector<float> masks;
  for (uint64_t position : positions) {
    batch.positions[0] = position;
    Batch one = batch.all();
    one.epoch = epoch;
    made->compute_gradients(one);  // with zero weights: 2 (0 + 0.5) x mask
    const auto kernel = made->layout().find("y/kernel");
    const std::vector<float> g = values(made->gradients());
    const auto first = g.begin() + static_cast<ptrdiff_t>(kernel.offset);
    masks.insert(masks.end(), first, first + static_cast<ptrdiff_t>(kernel.count));
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

TEST_P(EngineTest, GradientPassesTheSameMaskOfDropout) {
  ModelSpec spec = model(20,
                         {dense("a", 40, Activation::sigmoid), layer("drop", Dropout{0.5f}),
                          dense("y", 3, Activation::linear)},
                         3);
  const OwnedBatch batch(8, 20, 3);
  const auto made = engine(spec, 8, 2);
  initialize(*made);
  made->compute_gradients(batch.all());
  const std::vector<float> gradients = values(made->gradients());
  const auto& kernel = made->layout().find("a/kernel");
  for (size_t i = 0; i < kernel.count; i += 97) {
    const size_t at = kernel.offset + i;
    const float kept = values(made->parameters())[at];
    const auto loss_with = [&](float value) {
      put(made->parameters(), at, {value});
      return made->compute_gradients(batch.all()).loss;
    };
    const double above = loss_with(kept + 0.05f);
    const double below = loss_with(kept - 0.05f);
    put(made->parameters(), at, {kept});
    EXPECT_NEAR((above - below) / 0.1, gradients[kernel.offset + i], 2e-3);
  }
}

}  // namespace
}  // namespace muster::compute::testing
