#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/initialize.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::compute::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ParameterTensor tensor(const std::string& name, std::vector<int64_t> shape,
                       Segment segment = Segment::trainable) {
  ParameterTensor t;
  t.name = name;
  t.shape = std::move(shape);
  t.segment = segment;
  return t;
}

ParameterLayout example() {
  return ParameterLayout({tensor("first", {3, 5}), tensor("frozen", {70}, Segment::frozen),
                          tensor("second", {10, 20}), tensor("mean", {4}, Segment::state),
                          tensor("third", {1})});
}

TEST(ParameterLayout, PutsTheLastLayerFirstAndSegmentsOneAfterTheOther) {
  const ParameterLayout layout = example();
  std::vector<std::string> names;
  for (const auto& t : layout.tensors()) names.push_back(t.name);
  EXPECT_EQ(names, (std::vector<std::string>{"third", "second", "first", "frozen", "mean"}));
  EXPECT_EQ(layout.find("second").offset, 64u);
  EXPECT_EQ(layout.segment(Segment::trainable), (Range{0, 64 + 256 + 64}));
  EXPECT_EQ(layout.segment(Segment::frozen), (Range{384, 512}));
  EXPECT_EQ(layout.segment(Segment::state), (Range{512, 576}));
  EXPECT_EQ(layout.size(), 576u);
  EXPECT_EQ(layout.parameter_count(), 15u + 70 + 200 + 4 + 1);
}

TEST(ParameterLayout, LeavesNoRoomForAnEmptySegment) {
  const ParameterLayout layout({tensor("a", {2})});
  EXPECT_EQ(layout.segment(Segment::frozen), (Range{64, 64}));
  EXPECT_EQ(layout.segment(Segment::state), (Range{64, 64}));
  EXPECT_EQ(ParameterLayout({}).size(), 0u);
}

TEST(ParameterLayout, RefusesTwoTensorsOfOneName) {
  EXPECT_THAT(
      [] {
        ParameterLayout({tensor("a", {1}), tensor("a", {1})});
      },
      ThrowsMessage<Invalid>(HasSubstr("\"a\"")));
  EXPECT_THAT([] { example().find("none"); }, ThrowsMessage<Invalid>(HasSubstr("\"none\"")));
}

TEST(ParameterLayout, CutsAConvolutionsKernelAtItsLastAxis) {
  const ParameterLayout layout(
      {tensor("pointwise", {1, 1, 64, 32}), tensor("wide", {3, 3, 2, 64})});
  EXPECT_EQ(layout.partition(4),
            (std::vector<Range>{{0, 832}, {832, 1600}, {1600, 2400}, {2400, 3200}}));
}

TEST(ParameterLayout, CutsIntoShardsAtRowsOfTensors) {
  const ParameterLayout layout = example();
  for (int shards : {1, 2, 3, 7, 50}) {
    const std::vector<Range> ranges = layout.partition(shards);
    ASSERT_EQ(ranges.size(), size_t(shards));
    size_t at = 0;
    for (const Range& range : ranges) {
      EXPECT_EQ(range.begin, at);
      at = range.end;
      for (const auto& t : layout.tensors()) {
        if (at <= t.offset || at >= t.offset + t.count) continue;
        EXPECT_EQ((at - t.offset) % (t.count / size_t(t.shape[0])), 0u) << t.name;
      }
    }
    EXPECT_EQ(at, layout.size());
  }
}

TEST(ParameterLayout, CutsNoTensorWhereTheyMustBeWhole) {
  const ParameterLayout layout = example();
  for (int shards : {1, 2, 3, 7, 50}) {
    const auto ranges = layout.partition(shards, ParameterLayout::Borders::tensors);
    ASSERT_EQ(ranges.size(), size_t(shards));
    size_t at = 0;
    for (const Range& range : ranges) {
      EXPECT_EQ(range.begin, at);
      EXPECT_EQ(range.begin % ParameterLayout::kAlignment, 0u);
      at = range.end;
      for (const auto& t : layout.tensors())
        EXPECT_TRUE(at <= t.offset || at >= t.offset + t.count) << t.name;
    }
    EXPECT_EQ(at, layout.size());
  }
}

TEST(ParameterLayout, WholeTensorsAreSharedAsEvenlyAsTheyAllow) {
  // The buffer holds c with 64 floats, b with 192 and a with 128, in this order.
  const ParameterLayout layout({tensor("a", {128}), tensor("b", {130}), tensor("c", {10})});
  using Ranges = std::vector<Range>;
  const auto cut = [&](int shards) {
    return layout.partition(shards, ParameterLayout::Borders::tensors);
  };
  EXPECT_EQ(cut(1), (Ranges{{0, 384}}));
  EXPECT_EQ(cut(2), (Ranges{{0, 256}, {256, 384}}));
  EXPECT_EQ(cut(3), (Ranges{{0, 64}, {64, 256}, {256, 384}}));
  EXPECT_EQ(cut(5), (Ranges{{0, 64}, {64, 64}, {64, 256}, {256, 256}, {256, 384}}));
}

TEST(ParameterLayout, ShardsOfAnOptimizerAreCutAsItNeeds) {
  const ParameterLayout layout = example();
  EXPECT_EQ(shard_ranges(AdamW{}, layout, 7), layout.partition(7));
  EXPECT_EQ(shard_ranges(Lamb{}, layout, 7),
            layout.partition(7, ParameterLayout::Borders::tensors));
}

TEST(ParameterLayout, SharesOfALargeModelAreNearlyEqual) {
  const ParameterLayout layout(
      {tensor("a", {784, 256}), tensor("b", {256, 256}), tensor("c", {256, 10})});
  for (const Range& range : layout.partition(3)) {
    EXPECT_NEAR(double(range.size()), double(layout.size()) / 3, 256.0);
  }
}

TEST(ParameterLayout, FingerprintTellsNamesShapesAndSegmentsApart) {
  const std::string print = ParameterLayout({tensor("a", {2, 3})}).fingerprint();
  EXPECT_EQ(print.size(), 64u);
  EXPECT_EQ(print, ParameterLayout({tensor("a", {2, 3})}).fingerprint());
  EXPECT_NE(print, ParameterLayout({tensor("b", {2, 3})}).fingerprint());
  EXPECT_NE(print, ParameterLayout({tensor("a", {3, 2})}).fingerprint());
  EXPECT_NE(print, ParameterLayout({tensor("a", {2, 3}, Segment::frozen)}).fingerprint());
}

TEST(MakeLayout, IsTheEnginesLayout) {
  const auto made = cpu_engine(two_branches(), 4);
  EXPECT_EQ(make_layout(two_branches()).fingerprint(), made->layout().fingerprint());
  EXPECT_EQ(made->layout().find("right/kernel").segment, Segment::frozen);
  EXPECT_EQ(made->layout().find("frozen_norm/moving_mean").segment, Segment::frozen);
  EXPECT_EQ(made->layout().find("left_norm/moving_mean").segment, Segment::state);
}

struct Refusal {
  const char* what;
  ModelSpec spec;
  const char* message;
};

TEST(BuildGraph, NamesTheLayerThatDoesNotFit) {
  const auto relu = Activation::relu;
  const std::vector<Refusal> refusals = {
      {"no layers", model(4, {}, 3), "expected layers"},
      {"outputs", model(4, {dense("a", 4, relu)}, 3), "\"a\""},
      {"units", model(4, {dense("a", 0, relu)}, 3), "at least 1 unit"},
      {"unknown input", model(4, {dense("a", 3, relu, {"b"})}, 3), "\"b\""},
      {"same name", model(4, {dense("a", 4, relu), dense("a", 3, relu)}, 3), "\"a\""},
      {"rate", model(4, {layer("d", Dropout{1.0f}), dense("a", 3, relu)}, 3), "\"d\""},
      {"shapes", model(4, {dense("a", 3, relu), layer("s", Add{}, {"a", "input"})}, 3), "\"s\""},
      {"one input", model(4, {dense("a", 3, relu), layer("s", Concatenate{})}, 3), "two inputs"},
      {"huge", model(int64_t{1} << 40, {dense("a", 3, relu)}, 3), "2^32"},
      {"input size", model(0, {dense("a", 3, relu)}, 3), "input"},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.what);
    EXPECT_THAT([&] { make_layout(refusal.spec); },
                ThrowsMessage<Invalid>(HasSubstr(refusal.message)));
  }
}

TEST(BuildGraph, NeedsTheDataKnown) {
  const ModelSpec whole = model(4, {dense("a", 3, Activation::relu)}, 3);
  ModelSpec shapeless = whole, labelless = whole;
  shapeless.input_shape.clear();
  labelless.label_count = 0;
  EXPECT_NO_THROW(build_graph(whole));
  EXPECT_THROW(build_graph(shapeless), Invalid);
  EXPECT_THROW(build_graph(labelless), Invalid);
}

TEST(BuildGraph, SaysALineForEachLayerThatDoesNotFit) {
  const auto relu = Activation::relu;
  const ModelSpec spec = model(4, {dense("a", 0, relu), dense("b", 5, relu, {"nobody"})}, 3);
  EXPECT_THAT([&] { build_graph(spec); },
              ThrowsMessage<Invalid>("layer \"a\", units: expected at least 1 unit, found 0\n"
                                     "layer \"b\", inputs[0]: expected \"input\" or the name of an "
                                     "earlier layer, found \"nobody\"\n"
                                     "layer \"b\", units: expected 3 outputs, one for each class, "
                                     "found 5"));
}

TEST(CheckGraph, PassesOverWhatFollowsAndWhatIsNotKnown) {
  const auto relu = Activation::relu;
  const ModelSpec sum =
      model(4,
            {dense("a", 3, relu), dense("b", 2, relu), layer("s", Add{}, {"a", "b"}),
             layer("d", Dropout{0.5f}), layer("t", Add{}, {"d", "a"}), dense("y", 3, relu)},
            3);
  const GraphCheck check = check_graph(sum);
  ASSERT_EQ(check.mismatches.size(), 1u);
  EXPECT_EQ(check.mismatches[0].layer, 2);
  EXPECT_EQ(check.mismatches[0].field, "inputs");
  EXPECT_EQ(check.outputs, 3);
  ModelSpec open = sum;
  open.input_shape.clear();
  open.label_count = 0;
  EXPECT_EQ(check_graph(open).mismatches.size(), 1u);
  open.layers = {layer("d", Dropout{0.5f}), layer("s", Add{}, {"input", "d"})};
  EXPECT_TRUE(check_graph(open).mismatches.empty());
  EXPECT_EQ(check_graph(open).outputs, 0);
}

TEST(InitializeParameters, IsAFunctionOfSeedNameAndElementOnly) {
  const ParameterLayout one({tensor("a", {30, 20}), tensor("b", {7})});
  const ParameterLayout other({tensor("x", {5}), tensor("b", {7}), tensor("a", {30, 20})});
  std::vector<float> p(one.size(), 9.0f), q(other.size(), 9.0f);
  initialize_parameters(one, 3, p);
  initialize_parameters(other, 3, q);
  for (const char* name : {"a", "b"}) {
    const auto& from = one.find(name);
    for (size_t i = 0; i < from.count; ++i) {
      EXPECT_EQ(p[from.offset + i], q[other.find(name).offset + i]);
    }
  }
  EXPECT_EQ(p[one.find("a").offset + 600], 0.0f) << "padding";
  initialize_parameters(one, 4, q = p);
  EXPECT_NE(p, q);
}

TEST(InitializeParameters, FollowsTheInitializers) {
  const int64_t in = 400, out = 100;
  const auto moments = [&](Initializer initializer) {
    ParameterTensor t = tensor("k", {in, out});
    t.initializer = initializer;
    const ParameterLayout layout({t});
    std::vector<float> p(layout.size());
    initialize_parameters(layout, 1, p);
    double sum = 0, squares = 0, most = 0;
    for (float x : p) {
      sum += double(x);
      squares += double(x) * double(x);
      most = std::max(most, std::abs(double(x)));
    }
    const double n = double(in * out);
    return std::array<double, 3>{sum / n, std::sqrt(squares / n), most};
  };
  const double limit = std::sqrt(6.0 / 500);
  const auto glorot = moments({InitializerKind::glorot_uniform, 1});
  EXPECT_NEAR(glorot[1], limit / std::sqrt(3.0), 0.01 * limit);
  EXPECT_LE(glorot[2], limit);
  const auto he = moments({InitializerKind::he_normal, 1});
  EXPECT_NEAR(he[1], std::sqrt(2.0 / 400), 0.002);
  const auto normal = moments({InitializerKind::normal, 2});
  EXPECT_NEAR(normal[0], 0, 0.05);
  EXPECT_NEAR(normal[1], 2, 0.05);
  EXPECT_LE(moments({InitializerKind::uniform, 0.5f})[2], 0.5);
  EXPECT_EQ(moments({InitializerKind::zeros, 1})[2], 0);
  EXPECT_EQ(moments({InitializerKind::constant, 0.25f})[0], 0.25);
}

}  // namespace
}  // namespace muster::compute::testing
