#include "trainer/compute/models/object_finder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/compute/models/ssd.h"

namespace muster::compute {
namespace {

using detection::ClassificationLoss;

// Finds the one object of a detector of two classes, whose logits are 3 for the second class and -1
// for the others, in outputs that say nothing of any other anchor.
detection::Detection found_by(const ClassificationLoss& classification) {
  ModelSpec model =
      ssd_mobilenet({.classes = 2, .depth_multiplier = 0.1f, .classification = classification});
  model.input_shape = {64, 64, 3};
  const Graph graph = build_graph(model);
  const auto& loss = std::get<SsdLoss>(model.loss);
  ObjectFinder finder(loss, graph);
  std::vector<float> outputs(finder.outputs(), -1.0f);
  const size_t anchors = outputs.size() / 7;
  std::fill_n(outputs.begin(), 4 * anchors, 0.0f);
  const size_t first_logit = 4 * anchors;
  for (size_t i = 0; i < anchors; ++i) outputs[first_logit + 3 * i] = 3;  // the background
  outputs[first_logit + 3 * 5] = -1;
  outputs[first_logit + 3 * 5 + 2] = 3;
  return finder.find(outputs).front();
}

TEST(ObjectFinder, GivesTheScoresOfItsLoss) {
  const detection::Detection sigmoid = found_by({});
  EXPECT_EQ(sigmoid.label, 1);
  EXPECT_NEAR(sigmoid.score, 1 / (1 + std::exp(-3.0)), 1e-6);
  const detection::Detection softmax = found_by({ClassificationLoss::Kind::softmax, 2});
  EXPECT_EQ(softmax.label, 1);
  EXPECT_NEAR(softmax.score, std::exp(1.5) / (std::exp(1.5) + 2 * std::exp(-0.5)), 1e-6);
}

}  // namespace
}  // namespace muster::compute
