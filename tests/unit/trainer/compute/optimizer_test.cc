#include "trainer/compute/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/error.h"
#include "tests/unit/trainer/compute/support.h"
#include "tests/unit/trainer/extended.h"
#include "trainer/compute/schedule.h"
#include "trainer/compute/tensor_ratios.h"

namespace muster::compute::testing {
namespace {

// Returns a layout with a trained kernel (of several chunks), a trained bias, a frozen tensor and a
// state tensor, of sizes that no vector divides.
ParameterLayout layout_of_all() {
  std::vector<ParameterTensor> tensors(4);
  const char* names[] = {"kernel", "bias", "frozen", "state"};
  const std::vector<int64_t> shapes[] = {{137, 19}, {19}, {23}, {29}};
  for (size_t i = 0; i < 4; ++i) {
    tensors[i].name = names[i];
    tensors[i].shape = shapes[i];
  }
  tensors[1].weight_decay_multiplier = 0.0f;
  tensors[0].regularized = true;
  tensors[2].segment = Segment::frozen;
  tensors[3].segment = Segment::state;
  tensors[3].state_momentum = 0.9f;
  return ParameterLayout(tensors);
}

struct Buffers {
  explicit Buffers(const Optimizer& optimizer, size_t size) : parameters(size), gradients(size) {
    start(optimizer);
  }
  Buffers(const Optimizer& optimizer, std::vector<float> from)
      : parameters(std::move(from)), gradients(parameters.size()) {
    start(optimizer);
  }
  void start(const Optimizer& optimizer) {
    for (size_t i = 0; i < optimizer.slot_names().size(); ++i) {
      slots.emplace_back(parameters.size());
      optimizer.start_slot(i, parameters, slots.back());
    }
  }
  std::vector<std::span<float>> slices(Range range) {
    std::vector<std::span<float>> spans;
    for (auto& slot : slots) spans.push_back(std::span(slot).subspan(range.begin, range.size()));
    return spans;
  }
  std::vector<float> parameters, gradients;
  std::vector<std::vector<float>> slots;
};

void fill_tensors(const ParameterLayout& layout, std::vector<float>& values, uint64_t number) {
  for (const auto& t : layout.tensors()) {
    for (size_t i = 0; i < t.count; ++i) {
      values[t.offset + i] = fixture_value(number, t.offset + i, 1.0f);
    }
  }
}

UpdateArguments arguments_of(uint64_t t) {
  UpdateArguments arguments;
  arguments.learning_rate = 0.01f;
  arguments.inverse_rows = arguments.inverse_weight = 0.25f;
  arguments.t = t;
  return arguments;
}

// Returns the ratios of the tensors of these ranges, if the optimizer needs them.
std::vector<float> measured(const Optimizer& optimizer, Buffers& buffers,
                            const std::vector<Range>& ranges, uint64_t t) {
  if (!optimizer.needs_whole_tensors()) return {};
  std::vector<float> ratios(optimizer.layout().tensors().size());
  for (const Range& range : ranges) {
    TensorRatios ratios_of_range(optimizer.layout(), range);
    ratios_of_range.measure_all(optimizer, arguments_of(t),
                                std::span(buffers.parameters).subspan(range.begin, range.size()),
                                std::span(buffers.gradients).subspan(range.begin, range.size()),
                                buffers.slices(range));
    ratios_of_range.write(optimizer, ratios);
  }
  return ratios;
}

void apply(const Optimizer& optimizer, Buffers& buffers, const std::vector<Range>& ranges,
           uint64_t t, std::span<const float> ratios = {}) {
  UpdateArguments arguments = arguments_of(t);
  arguments.ratios = ratios;
  for (const Range& range : ranges) {
    const auto slots = buffers.slices(range);
    optimizer.apply(
        range, arguments, std::span(buffers.parameters).subspan(range.begin, range.size()),
        std::span<const float>(buffers.gradients).subspan(range.begin, range.size()), slots);
  }
}

std::vector<OptimizerKind> kinds() {
  return {Sgd{},   Sgd{0.9f, false}, Sgd{0.9f, true},           Adam{},
          AdamW{}, Lamb{},           RmsProp{0.9f, 0.8f, 1e-3f}};
}

// Each formula by itself, and with what can stand beside it. The kernel's gradient is longer than
// clip_norm, the bias's is not.
std::vector<OptimizerSpec> specs() {
  std::vector<OptimizerSpec> all;
  for (const OptimizerKind& kind : kinds()) {
    OptimizerSpec& averaged = all.emplace_back(kind);
    averaged.average = 0.8;
    OptimizerSpec shaped = kind;
    shaped.l2 = L2{0.3f, ""};
    all.push_back(shaped);
    shaped.average = 0.8;
    shaped.clip_value = 0.1f;
    all.push_back(shaped);
    shaped.clip_value.reset();
    shaped.clip_norm = 2.0f;
    if (!std::holds_alternative<Lamb>(kind)) all.push_back(shaped);
    all.emplace_back(kind);
  }
  return all;
}

std::string name_of(const OptimizerSpec& spec) {
  return "formula " + std::to_string(spec.kind.index()) + (spec.l2 ? ", l2" : "") +
         (spec.clip_value ? ", clip_value" : "") + (spec.clip_norm ? ", clip_norm" : "") +
         (spec.average ? ", average" : "");
}

struct Scalar {
  double p, m = 0, v = 0, average = p;
};

// Returns the mean gradient of a tensor with L2 and clipping, by optimizer.h in float64.
std::vector<double> mean_gradient(const OptimizerSpec& spec, const ParameterTensor& tensor,
                                  std::span<const Scalar> values, const float* sums) {
  std::vector<double> all;
  double squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    double g = double(sums[i]) * 0.25;
    if (spec.l2 && tensor.regularized) g += double(spec.l2->factor) * values[i].p;
    if (spec.clip_value) g = std::clamp(g, -double(*spec.clip_value), double(*spec.clip_value));
    squares += g * g;
    all.push_back(g);
  }
  const double norm = std::sqrt(squares);
  if (spec.clip_norm && norm > double(*spec.clip_norm))
    for (double& g : all) g *= double(*spec.clip_norm) / norm;
  return all;
}

// Updates a scalar by optimizer.h's formulas in float64.
void expect_step(const OptimizerKind& spec, Scalar& s, double g, double rate, double decay,
                 uint64_t t) {
  if (const Sgd* sgd = std::get_if<Sgd>(&spec)) {
    const double momentum = double(sgd->momentum);
    s.v = momentum * s.v - rate * g;
    s.p += sgd->nesterov ? momentum * s.v - rate * g : s.v;
    return;
  }
  if (const RmsProp* rms = std::get_if<RmsProp>(&spec)) {
    s.m = double(rms->decay) * s.m + (1 - double(rms->decay)) * g * g;
    s.v = double(rms->momentum) * s.v + rate * g / std::sqrt(s.m + double(rms->epsilon));
    s.p -= s.v;
    return;
  }
  if (std::holds_alternative<AdamW>(spec)) s.p -= rate * double(AdamW{}.weight_decay) * decay * s.p;
  const double b1 = double(Adam{}.beta1), b2 = double(Adam{}.beta2);
  s.m = b1 * s.m + (1 - b1) * g;
  s.v = b2 * s.v + (1 - b2) * g * g;
  const double corrected =
      rate * std::sqrt(1 - std::pow(b2, double(t))) / (1 - std::pow(b1, double(t)));
  s.p -= corrected * s.m / (std::sqrt(s.v) + double(Adam{}.epsilon));
}

// Updates a whole tensor by Lamb's formula in float64.
void expect_lamb(std::span<Scalar> tensor, const std::vector<double>& gradient, double rate,
                 double decay, uint64_t t) {
  const Lamb lamb;
  const double b1 = double(lamb.beta1), b2 = double(lamb.beta2);
  std::vector<double> direction;
  double squares = 0, moved = 0;
  for (size_t i = 0; i < tensor.size(); ++i) {
    Scalar& s = tensor[i];
    const double g = gradient[i];
    s.m = b1 * s.m + (1 - b1) * g;
    s.v = b2 * s.v + (1 - b2) * g * g;
    const double m = s.m / (1 - std::pow(b1, double(t))), v = s.v / (1 - std::pow(b2, double(t)));
    direction.push_back(m / (std::sqrt(v) + double(lamb.epsilon)) +
                        double(lamb.weight_decay) * decay * s.p);
    squares += s.p * s.p;
    moved += direction.back() * direction.back();
  }
  const double ratio = squares > 0 && moved > 0 ? std::sqrt(squares / moved) : 1;
  for (size_t i = 0; i < tensor.size(); ++i) tensor[i].p -= rate * ratio * direction[i];
}

class Rules : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { setenv("MUSTER_INSTRUCTION_SET", GetParam().c_str(), 1); }
  void TearDown() override { unsetenv("MUSTER_INSTRUCTION_SET"); }
};

// Updates a whole tensor that is trained.
void expect_update(const OptimizerSpec& spec, const ParameterTensor& tensor,
                   std::span<Scalar> values, const float* sums, uint64_t t) {
  const double rate = double(0.01f), decay = double(tensor.weight_decay_multiplier);
  const std::vector<double> gradient = mean_gradient(spec, tensor, values, sums);
  if (std::holds_alternative<Lamb>(spec.kind))
    expect_lamb(values, gradient, rate, decay, t);
  else
    for (size_t i = 0; i < values.size(); ++i)
      expect_step(spec.kind, values[i], gradient[i], rate, decay, t);
  if (!spec.average) return;
  for (Scalar& s : values) s.average = *spec.average * s.average + (1 - *spec.average) * s.p;
}

TEST_P(Rules, FollowTheirFormulas) {
  const ParameterLayout layout = layout_of_all();
  for (const OptimizerSpec& spec : specs()) {
    SCOPED_TRACE(name_of(spec));
    const auto optimizer = Optimizer::create(spec, layout);
    std::vector<float> start(layout.size());
    fill_tensors(layout, start, 1);
    Buffers buffers(*optimizer, start);
    std::vector<Scalar> expected;
    const bool rms = std::holds_alternative<RmsProp>(spec.kind);
    for (float p : start) expected.push_back({double(p), rms ? 1.0 : 0.0});
    for (uint64_t t = 1; t <= 5; ++t) {
      fill_tensors(layout, buffers.gradients, 10 + t);
      apply(*optimizer, buffers, {{0, layout.size()}}, t);
      for (const auto& tensor : layout.tensors()) {
        const auto values = std::span(expected).subspan(tensor.offset, tensor.count);
        const float* sums = &buffers.gradients[tensor.offset];
        if (tensor.segment == Segment::trainable)
          expect_update(spec, tensor, values, sums, t);
        else if (tensor.segment == Segment::state)
          for (size_t i = 0; i < values.size(); ++i)
            values[i].p = double(0.9f) * values[i].p + (1 - double(0.9f)) * double(sums[i]) * 0.25;
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_NEAR(buffers.parameters[tensor.offset + i], values[i].p, 3e-6)
              << tensor.name << " t " << t;
          if (!spec.average) continue;
          ASSERT_NEAR(buffers.slots.back()[tensor.offset + i], values[i].average, 3e-6)
              << tensor.name << " t " << t;
        }
      }
    }
  }
}

TEST_P(Rules, TrainTheSameBitsWithAndWithoutAnAverage) {
  const ParameterLayout layout = layout_of_all();
  for (OptimizerSpec spec : specs()) {
    SCOPED_TRACE(name_of(spec));
    std::vector<std::vector<float>> found;
    for (const std::optional<double> average : {std::optional<double>(), std::optional(0.5)}) {
      spec.average = average;
      const auto optimizer = Optimizer::create(spec, layout);
      Buffers buffers(*optimizer, layout.size());
      fill_tensors(layout, buffers.parameters, 1);
      for (uint64_t t = 1; t <= 2; ++t) {
        fill_tensors(layout, buffers.gradients, 10 + t);
        apply(*optimizer, buffers, {{0, layout.size()}}, t);
      }
      found.push_back(buffers.parameters);
    }
    EXPECT_EQ(found[0], found[1]);
  }
}

// A training that has diverged must not go on as if it had not.
TEST_P(Rules, LeaveANanWhatItIs) {
  const ParameterLayout layout = layout_of_all();
  for (const bool by_norm : {false, true}) {
    OptimizerSpec spec = Sgd{};
    (by_norm ? spec.clip_norm : spec.clip_value) = 0.1f;
    const auto optimizer = Optimizer::create(spec, layout);
    Buffers buffers(*optimizer, layout.size());
    const size_t at = layout.find("kernel").offset + 5;
    buffers.gradients[at] = std::nanf("");
    apply(*optimizer, buffers, {{0, layout.size()}}, 1);
    EXPECT_TRUE(std::isnan(buffers.parameters[at])) << by_norm;
  }
}

TEST_P(Rules, GiveTheSameBitsHoweverTheLayoutIsCut) {
  const ParameterLayout layout = layout_of_all();
  std::vector<std::vector<Range>> cuts = {layout.partition(3), layout.partition(7)};
  cuts.push_back({{0, 5}, {5, 6}, {6, 333}, {333, 334}, {334, layout.size()}});
  for (const OptimizerSpec& spec : specs()) {
    SCOPED_TRACE(name_of(spec));
    const auto optimizer = Optimizer::create(spec, layout);
    Buffers whole(*optimizer, layout.size());
    fill_tensors(layout, whole.parameters, 1);
    std::vector<Buffers> pieces(cuts.size(), whole);
    for (uint64_t t = 1; t <= 3; ++t) {
      fill_tensors(layout, whole.gradients, 10 + t);
      const std::vector<Range> ends = shard_ranges(spec, layout, 3);
      const std::vector<float> ratios = measured(*optimizer, whole, ends, t);
      apply(*optimizer, whole, {{0, layout.size()}}, t);
      for (size_t c = 0; c < cuts.size(); ++c) {
        pieces[c].gradients = whole.gradients;
        apply(*optimizer, pieces[c], cuts[c], t, ratios);
        EXPECT_EQ(pieces[c].parameters, whole.parameters);
        EXPECT_EQ(pieces[c].slots, whole.slots);
      }
    }
  }
}

TEST_P(Rules, LeaveFrozenParametersAndPaddingAlone) {
  const ParameterLayout layout = layout_of_all();
  for (const OptimizerSpec& spec : specs()) {
    const auto optimizer = Optimizer::create(spec, layout);
    Buffers buffers(*optimizer, layout.size());
    buffers.gradients.assign(layout.size(), 1.0f);
    apply(*optimizer, buffers, {{0, layout.size()}}, 1);
    std::vector<bool> touched(layout.size());
    for (const auto& tensor : layout.tensors()) {
      if (tensor.segment == Segment::frozen) continue;
      for (size_t i = 0; i < tensor.count; ++i) touched[tensor.offset + i] = true;
    }
    for (size_t i = 0; i < layout.size(); ++i) EXPECT_EQ(buffers.parameters[i] != 0.0f, touched[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(EverySet, Rules, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& info) { return info.param; });

TEST(Optimizer, RefusesBuffersThatAreNotTheRange) {
  const ParameterLayout layout = layout_of_all();
  const auto optimizer = Optimizer::create(Adam{}, layout);
  Buffers buffers(*optimizer, layout.size());
  const auto slots = buffers.slices({0, layout.size()});
  EXPECT_THROW(optimizer->apply({0, 5}, {}, buffers.parameters, buffers.gradients, slots), Invalid);
  EXPECT_THROW(optimizer->apply({0, layout.size()}, {}, buffers.parameters, buffers.gradients, {}),
               Invalid);
}

TEST(Optimizer, RefusesAPieceOfATensorThatItNeedsWhole) {
  const ParameterLayout layout = layout_of_all();
  const ParameterTensor& kernel = layout.find("kernel");
  for (const OptimizerSpec& spec : {OptimizerSpec{Lamb{}}, extended(Adam{})}) {
    const auto optimizer = Optimizer::create(spec, layout);
    Buffers buffers(*optimizer, layout.size());
    for (const Range range :
         {Range{0, kernel.offset + 1}, Range{kernel.offset + 19, layout.size()}})
      try {
        apply(*optimizer, buffers, {range}, 1);
        FAIL() << "[" << range.begin << ", " << range.end << ") is applied";
      } catch (const Invalid& error) {
        EXPECT_NE(std::string(error.what()).find("found a part of \"kernel\""), std::string::npos)
            << error.what();
      }
  }
}

TEST(Optimizer, RegularizesTheTensorsThatAPatternNames) {
  const ParameterLayout layout = layout_of_all();
  const auto regularized = [&](const std::string& pattern) {
    OptimizerSpec spec = Sgd{};
    spec.l2 = L2{1.0f, pattern};
    const auto optimizer = Optimizer::create(spec, layout);
    Buffers buffers(*optimizer, std::vector<float>(layout.size(), 1.0f));
    apply(*optimizer, buffers, {{0, layout.size()}}, 1);
    std::vector<std::string> names;
    for (const auto& tensor : layout.tensors())
      if (buffers.parameters[tensor.offset] < 1.0f && tensor.segment == Segment::trainable)
        names.push_back(tensor.name);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(regularized(""), Names{"kernel"});
  EXPECT_EQ(regularized("bia"), Names{"bias"});
  EXPECT_EQ(regularized("^(bias|kernel|frozen)$"), (Names{"bias", "kernel"}));
  EXPECT_EQ(regularized("(?i)BIAS"), Names{"bias"});  // RE2's syntax, not ECMAScript's
  try {
    regularized("^rnel");
    FAIL() << "a pattern that is in no name is taken";
  } catch (const Invalid& error) {
    EXPECT_EQ(std::string(error.what()),
              "optimizer.l2.tensors: expected a pattern that the name of a trainable tensor "
              "contains, such as bias; found \"^rnel\"");
  }
}

TEST(Optimizer, MeasuresTheSameBitsByAllVectorsThatFuse) {
  const ParameterLayout layout = layout_of_all();
  OptimizerSpec regularized = Lamb{};
  regularized.l2 = L2{0.1f, ""};
  regularized.clip_value = 0.2f;
  for (const OptimizerSpec& spec : {OptimizerSpec{Lamb{}}, regularized, extended(Sgd{})}) {
    std::vector<std::vector<float>> ratios;
    for (const std::string& set : instruction_sets()) {
      if (set == "generic") continue;
      setenv("MUSTER_INSTRUCTION_SET", set.c_str(), 1);
      const auto optimizer = Optimizer::create(spec, layout);
      Buffers buffers(*optimizer, layout.size());
      fill_tensors(layout, buffers.parameters, 1);
      fill_tensors(layout, buffers.gradients, 11);
      ratios.push_back(measured(*optimizer, buffers, {{0, layout.size()}}, 1));
    }
    unsetenv("MUSTER_INSTRUCTION_SET");
    for (const auto& other : ratios) EXPECT_EQ(other, ratios.front());
  }
}

struct Rate {
  const char* what;
  Schedule schedule;
  uint64_t step;
  double expected;
};

TEST(Schedule, FollowsItsFormula) {
  const Schedule piecewise{0.1, Piecewise{{10, 20}, {0.1, 0.01, 0.001}}, 0};
  const Schedule smooth{0.1, Exponential{10, 0.5, false}, 0},
      stairs{0.1, Exponential{10, 0.5, true}, 0};
  const Schedule cosine{0.1, Cosine{100, 0.1}, 0}, warm{0.1, Exponential{10, 0.5, true}, 5};
  const std::vector<Rate> rates = {
      {"constant", {0.1, Constant{}, 0}, 1000, 0.1},
      {"piecewise before", piecewise, 9, 0.1},
      {"piecewise at", piecewise, 10, 0.1},
      {"piecewise next", piecewise, 11, 0.01},
      {"piecewise after", piecewise, 99, 0.001},
      {"exponential", smooth, 5, 0.1 * std::sqrt(0.5)},
      {"staircase", stairs, 19, 0.05},
      {"cosine start", cosine, 0, 0.1},
      {"cosine middle", cosine, 50, 0.1 * (0.9 * 0.5 + 0.1)},
      {"cosine end", cosine, 1000, 0.01},
      {"warm-up first", warm, 0, 0.02},
      {"warm-up last", warm, 4, 0.1},
      {"after warm-up", warm, 14, 0.1},
      {"shape starts after", warm, 15, 0.05},
  };
  for (const Rate& rate : rates) {
    EXPECT_NEAR(rate.schedule.at(rate.step), rate.expected, 1e-12) << rate.what;
  }
}

}  // namespace
}  // namespace muster::compute::testing
