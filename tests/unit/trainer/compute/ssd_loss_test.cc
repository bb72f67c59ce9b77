#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/error.h"
#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/loss.h"
#include "trainer/compute/models/ssd.h"
#include "trainer/detection/objects.h"

namespace muster::compute::testing {
namespace {

using detection::Box;
using detection::ClassificationLoss;
using detection::Object;
using detection::ObjectList;

constexpr size_t kMost = 3;
constexpr int64_t kClasses = 2;

// A detector with two grids, of 4 x 4 and 2 x 2 cells.
ModelSpec detector(const detection::ClassificationLoss& classification = {}) {
  const auto convolution = [](int64_t filters, int64_t size, int64_t stride,
                              Activation activation) {
    Conv2d layer;
    layer.filters = filters;
    layer.window = {{size, size}, {stride, stride}, Padding::same};
    layer.activation = activation;
    return layer;
  };
  SsdLoss loss;
  loss.classes = kClasses;
  loss.classification = classification;
  loss.anchors.num_layers = 2;
  loss.anchors.min_scale = 0.3f;
  loss.anchors.max_scale = 0.6f;
  loss.grids = {"fine", "coarse"};
  std::vector<LayerSpec> layers = {layer("fine", convolution(5, 3, 1, Activation::sigmoid)),
                                   layer("coarse", convolution(7, 3, 2, Activation::sigmoid))};
  const std::vector<int> anchors = detection::anchors_per_cell(loss.anchors);
  std::vector<std::string> flat;
  for (const int64_t width : {int64_t{4}, kClasses + 1}) {
    for (size_t i = 0; i < 2; ++i) {
      const std::string name = loss.grids[i] + std::to_string(width);
      layers.push_back(
          layer(name, convolution(anchors[i] * width, 1, 1, Activation::linear), {loss.grids[i]}));
      layers.push_back(layer(name + "_flat", Flatten{}));
      flat.push_back(layers.back().name);
    }
  }
  layers.push_back(layer("predictions", Concatenate{}, flat));
  ModelSpec spec;
  spec.name = "detector";
  spec.input_shape = {4, 4, 2};
  spec.label_count = static_cast<int64_t>(ObjectList::floats(kMost));
  spec.layers = std::move(layers);
  spec.loss = std::move(loss);
  return spec;
}

class SsdLossTest : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << kNoGpu;
  }

  SsdLossTest() {
    place(0, {{{0.1f, 0.1f, 0.5f, 0.5f}, 1}, {{0.4f, 0.3f, 0.9f, 0.95f}, 0, 0.5f}});
    place(1, {{{0.0f, 0.5f, 0.4f, 0.9f}, 0}, {{0.5f, 0.0f, 1.0f, 0.5f}, 1, 1, true}});
    place(2, {});
  }

  void place(size_t row, const std::vector<Object>& objects) {
    const size_t floats = ObjectList::floats(kMost);
    detection::write_objects(40, 40, objects,
                             std::span(batch_.targets).subspan(row * floats, floats));
  }

  // The loss of an anchor's logits.
  static double class_loss(const ClassificationLoss& loss, std::span<const float> logits,
                           size_t label) {
    double sum = 0, exponentials = 0;
    for (size_t c = 0; c < logits.size(); ++c) {
      const double x = logits[c];
      sum += std::max(x, 0.0) - x * (c == label ? 1 : 0) + std::log1p(std::exp(-std::abs(x)));
      exponentials += std::exp(x / double(loss.logit_scale));
    }
    if (loss.kind == ClassificationLoss::Kind::sigmoid) return sum;
    return std::log(exponentials) - double(logits[label]) / double(loss.logit_scale);
  }

  // The loss of a row as the comment of SsdLoss says it, in float64, from the model's outputs.
  struct Expected {
    double classification = 0, localization = 0;
    int64_t matched = 0;
  };
  Expected expected(const ModelSpec& spec, std::span<const float> outputs, size_t row) const {
    const auto& loss = std::get<SsdLoss>(spec.loss);
    const std::vector<float> anchors = anchors_of(loss, build_graph(spec));
    const size_t count = anchors.size() / 4;
    const size_t floats = ObjectList::floats(kMost);
    const ObjectList objects(std::span(batch_.targets).subspan(row * floats, floats));
    std::vector<int> owner(count, -1);
    std::vector<float> best(count, 0);
    for (size_t a = 0; a < count; ++a) {
      for (size_t i = 0; i < objects.size(); ++i) {
        const float overlap = detection::iou(detection::box_at(anchors, a), objects.at(i).box);
        if (overlap > best[a]) best[a] = overlap, owner[a] = static_cast<int>(i);
      }
      if (best[a] < 0.5f) owner[a] = -1;
    }
    for (size_t i = objects.size(); i-- > 0;) {
      if (objects.at(i).crowd) continue;
      size_t most = 0;
      const auto overlap = [&](size_t a) {
        return detection::iou(detection::box_at(anchors, a), objects.at(i).box);
      };
      for (size_t a = 1; a < count; ++a)
        if (overlap(a) > overlap(most)) most = a;
      owner[most] = static_cast<int>(i);
    }
    Expected sum;
    std::vector<double> class_losses(count), code_losses(count);
    for (size_t a = 0; a < count; ++a) {
      const bool object = owner[a] >= 0;
      const Object found = object ? objects.at(static_cast<size_t>(owner[a])) : Object{};
      const double weight = !object ? 1 : found.crowd ? 0 : double(found.weight);
      class_losses[a] =
          weight * class_loss(loss.classification,
                              outputs.subspan(count * 4 + a * (kClasses + 1), kClasses + 1),
                              static_cast<size_t>(object ? found.label + 1 : 0));
      if (!object || weight == 0) continue;
      ++sum.matched;
      const Box anchor = detection::box_at(anchors, a);
      const auto centre = [](float low, float high) { return (double(low) + double(high)) / 2; };
      const auto size = [](float low, float high) { return double(high) - double(low); };
      const double height = size(anchor.ymin, anchor.ymax), width = size(anchor.xmin, anchor.xmax);
      const double codes[] = {
          10 * (centre(found.box.ymin, found.box.ymax) - centre(anchor.ymin, anchor.ymax)) / height,
          10 * (centre(found.box.xmin, found.box.xmax) - centre(anchor.xmin, anchor.xmax)) / width,
          5 * std::log(size(found.box.ymin, found.box.ymax) / height),
          5 * std::log(size(found.box.xmin, found.box.xmax) / width)};
      for (size_t k = 0; k < 4; ++k) {
        const double d = std::abs(double(outputs[a * 4 + k]) - codes[k]);
        code_losses[a] += weight * (d <= 1 ? d * d / 2 : d - 0.5);
      }
    }
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order,
                             [&](size_t a, size_t b) { return class_losses[a] > class_losses[b]; });
    const auto positives = std::ranges::count_if(owner, [](int object) { return object >= 0; });
    int64_t negatives = 0;
    for (const size_t a : order) {
      if (owner[a] < 0 && ++negatives > 3 * positives) continue;
      sum.classification += class_losses[a];
      sum.localization += code_losses[a];
    }
    return sum;
  }

  void compare_gradients(const ClassificationLoss& classification);

  OwnedBatch batch_{3, 32, static_cast<int64_t>(ObjectList::floats(kMost))};
};

constexpr ClassificationLoss kSoftmax{ClassificationLoss::Kind::softmax, 0.5f};

INSTANTIATE_TEST_SUITE_P(Backends, SsdLossTest, ::testing::ValuesIn(backends()),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(SsdLossTest, IsTheSumOfItsTermsOverTheAnchorsThatAreLeft) {
  const std::pair<int, ClassificationLoss> cases[] = {{1, {}}, {2, {}}, {3, {}}, {2, kSoftmax}};
  for (const auto& [threads, classification] : cases) {
    const ModelSpec spec = detector(classification);
    const auto engine = testing::engine(GetParam(), spec, 3, threads);
    initialize(*engine);
    std::vector<float> outputs(3 * static_cast<size_t>(engine->output_count()));
    const LossSums sums = engine->evaluate(batch_.all(), outputs);
    Expected all;
    for (size_t row = 0; row < 3; ++row) {
      const size_t width = outputs.size() / 3;
      const Expected one = expected(spec, std::span(outputs).subspan(row * width, width), row);
      all.classification += one.classification;
      all.localization += one.localization;
      all.matched += one.matched;
    }
    EXPECT_GT(all.matched, 2);
    EXPECT_EQ(sums.weight, double(all.matched));
    EXPECT_EQ(sums.rows, 3);
    EXPECT_NEAR(sums.terms[0], all.classification, 1e-4 * all.classification);
    EXPECT_NEAR(sums.terms[1], all.localization, 1e-4 * all.localization);
    EXPECT_NEAR(sums.loss, all.classification + all.localization, 1e-4 * sums.loss);
    const auto metrics = metrics_of(spec.loss, sums);
    EXPECT_EQ(value_of(metrics, "localizationLoss"), sums.terms[1] / sums.weight);
  }
}

TEST_P(SsdLossTest, HasTheGradientOfDifferences) {
  for (const ClassificationLoss& classification : {ClassificationLoss{}, kSoftmax})
    compare_gradients(classification);
}

void SsdLossTest::compare_gradients(const ClassificationLoss& classification) {
  const auto engine = testing::engine(GetParam(), detector(classification), 3, 2);
  initialize(*engine);
  engine->compute_gradients(batch_.all());
  const std::vector<float> gradients = values(engine->gradients());
  const std::vector<float> start = values(engine->parameters());
  int compared = 0;
  for (const ParameterTensor& tensor : engine->layout().tensors()) {
    for (size_t i = 0; i < tensor.count; i += tensor.count / 5 + 1) {
      const size_t at = tensor.offset + i;
      const auto loss_with = [&](float change) {
        put(engine->parameters(), at, {start[at] + change});
        return engine->evaluate(batch_.all()).loss;
      };
      constexpr float kStep = 4e-3f;
      const double slope = (loss_with(kStep) - loss_with(-kStep)) / (2 * double(kStep));
      put(engine->parameters(), at, {start[at]});
      EXPECT_NEAR(double(gradients[at]), slope, 0.01 * std::abs(slope) + 0.01)
          << tensor.name << " " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 30);
}

// Boxes that overlap by far less than usual suppress each other, the hardest first.
TEST_P(SsdLossTest, MinesAsTheCpuDoes) {
  std::vector<detection::MiningSettings> cases(7);
  cases[0].iou_threshold = 0.5f;
  cases[1].iou_threshold = 0.2f;
  cases[2].iou_threshold = 0.05f;
  cases[3].num_hard_examples = 7;
  cases[4].iou_threshold = 0.5f;
  cases[4].max_negatives_per_positive = 0;
  cases[5].max_negatives_per_positive = 1.5f;
  cases[6].min_negatives_per_image = 11;
  detection::MatcherSettings ignoring;
  ignoring.unmatched_threshold = 0.3f;
  for (const detection::MatcherSettings& matcher : {detection::MatcherSettings{}, ignoring}) {
    for (const detection::MiningSettings& mining : cases) {
      ModelSpec spec = detector();
      std::get<SsdLoss>(spec.loss).mining = mining;
      std::get<SsdLoss>(spec.loss).matcher = matcher;
      const auto cpu = cpu_engine(spec, 3);
      const auto other = testing::engine(GetParam(), spec, 3);
      initialize(*cpu);
      initialize(*other);
      const LossSums expected = cpu->compute_gradients(batch_.all());
      const LossSums sums = other->compute_gradients(batch_.all());
      EXPECT_EQ(sums.weight, expected.weight);
      EXPECT_NEAR(sums.terms[0], expected.terms[0], 1e-5 * expected.terms[0]);
      EXPECT_NEAR(sums.terms[1], expected.terms[1], 1e-5 * expected.terms[1]);
      EXPECT_THAT(values(other->gradients()),
                  ::testing::Pointwise(::testing::FloatNear(1e-4f), values(cpu->gradients())));
    }
  }
}

TEST_P(SsdLossTest, ImagesWithoutObjectsTeachNothingAndHaveNoWeight) {
  const auto engine = testing::engine(GetParam(), detector(), 3);
  initialize(*engine);
  const LossSums sums = engine->compute_gradients(batch_.part(2, 1));
  EXPECT_EQ(sums.weight, 0);
  EXPECT_EQ(sums.loss, 0);
  EXPECT_THAT(values(engine->gradients()), ::testing::Each(0.0f));
}

// Mining would leave out all of what is not a number.
TEST_P(SsdLossTest, IsNotANumberWhereOutputsAreNot) {
  for (const char* tensor : {"coarse4/bias", "fine3/bias", "coarse3/bias"}) {
    const auto engine = testing::engine(GetParam(), detector(), 3);
    initialize(*engine);
    const ParameterTensor& bias = engine->layout().find(tensor);
    put(engine->parameters(), bias.offset, std::vector<float>(bias.count, NAN));
    EXPECT_TRUE(std::isnan(engine->compute_gradients(batch_.all()).loss)) << tensor;
    EXPECT_TRUE(std::isnan(engine->evaluate(batch_.all()).loss)) << tensor;
  }
}

// Boxes beside the image, without area or not finite, and labels that there are not, are no
// objects.
TEST_P(SsdLossTest, SurvivesBadObjects) {
  const float inf = INFINITY, nan = NAN;
  place(0, {{{nan, 0, 1, 1}, 0}, {{0, 0, inf, inf}, 1}, {{0.5f, 0.5f, 0.5f, 0.5f}, 0}});
  place(1, {{{2, 2, 3, 3}, 0}, {{0.6f, 0.6f, 0.4f, 0.4f}, 1}, {{0, 0, 1, 1}, 7}});
  const auto engine = testing::engine(GetParam(), detector(), 3);
  initialize(*engine);
  const LossSums sums = engine->compute_gradients(batch_.all());
  EXPECT_EQ(sums.weight, 0);
  for (const float gradient : values(engine->gradients())) ASSERT_TRUE(std::isfinite(gradient));
}

TEST(SsdMobilenet, IsTheDetectorOfTheObjectDetectionApi) {
  const ModelSpec spec = ssd_mobilenet({});
  const Graph graph = build_graph(spec);
  const auto& loss = std::get<SsdLoss>(spec.loss);
  EXPECT_EQ(anchors_of(loss, graph).size() / 4, 1917u);
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.output)].width, 1917 * (4 + 91));
  const double parameters = double(graph.layout.parameter_count());
  EXPECT_NEAR(parameters, 6.8e6, 0.05e6);
}

TEST(SsdMobilenet, FitsSmallImages) {
  ModelSpec spec = ssd_mobilenet({.classes = 10, .depth_multiplier = 0.25f});
  spec.input_shape = {96, 128, 3};
  // Grids of 6 x 8, with 3 anchors each, 3 x 4, 2 x 2, and three of 1 x 1, with 6.
  EXPECT_EQ(anchors_of(std::get<SsdLoss>(spec.loss), build_graph(spec)).size() / 4,
            6 * 8 * 3 + (3 * 4 + 2 * 2 + 3) * 6u);
}

TEST(AnchorsOf, NamesWhatDoesNotFit) {
  ModelSpec spec = detector();
  std::get<SsdLoss>(spec.loss).classes = 3;
  EXPECT_THAT([&] { cpu_engine(spec, 1); },
              ::testing::ThrowsMessage<Invalid>(::testing::HasSubstr("4 logits for each of")));
  std::get<SsdLoss>(spec.loss).grids[1] = "none";
  EXPECT_THAT([&] { anchors_of(std::get<SsdLoss>(spec.loss), build_graph(spec)); },
              ::testing::ThrowsMessage<Invalid>(::testing::HasSubstr("\"none\"")));
}

}  // namespace
}  // namespace muster::compute::testing
