#include <gmock/gmock.h>

#include "trainer/compute/graph.h"
#include "trainer/compute/metrics/evaluator.h"
#include "trainer/compute/models/ssd.h"
#include "trainer/detection/objects.h"

namespace muster::compute {
namespace {

// A detector for images of 64 x 64, and the outputs by which it finds one object.
class CocoMetricsTest : public testing::Test {
 protected:
  CocoMetricsTest() {
    SsdOptions options;
    options.classes = 3;
    options.depth_multiplier = 0.1f;
    model_ = ssd_mobilenet(options);
    model_.input_shape = {64, 64, 3};
    graph_.emplace(build_graph(model_));
    anchors_ = anchors_of(std::get<SsdLoss>(model_.loss), *graph_);
  }

  // An anchor that lies in the image.
  size_t inner_anchor() const {
    for (size_t i = 0; i < anchors_.size() / 4; ++i) {
      const detection::Box box = detection::box_at(anchors_, i);
      if (box.ymin > 0 && box.xmin > 0 && box.ymax < 1 && box.xmax < 1) return i;
    }
    return 0;
  }

  // Says that `anchor` is an object of the class, exactly where it stands, and no other is one.
  std::vector<float> outputs(size_t anchor, size_t label) const {
    const size_t count = anchors_.size() / 4;
    std::vector<float> outputs(4 * count, 0.0f);
    outputs.resize(static_cast<size_t>(graph_->outputs()), -30.0f);
    outputs[4 * count + 4 * anchor + 1 + label] = 30.0f;
    return outputs;
  }

  ModelSpec model_;
  std::optional<Graph> graph_;
  std::vector<float> anchors_;
};

TEST_F(CocoMetricsTest, HaveThePrecisionOfEachClassThatHasObjects) {
  const size_t anchor = inner_anchor();
  const detection::Box box = detection::box_at(anchors_, anchor);
  const auto accumulator = coco_metrics().make(*graph_, {});
  // Class 0 is found where it is; class 2 is taken for class 0; class 1 is nowhere.
  for (const int32_t label : {0, 2}) {
    std::vector<float> target(static_cast<size_t>(model_.label_count));
    const detection::Object object{box, label, 1, false, 100};
    detection::write_objects(64, 64, std::span(&object, 1), target);
    const float* targets = target.data();
    Batch batch;
    batch.rows = 1;
    batch.targets = std::span(&targets, 1);
    accumulator->add({batch, outputs(anchor, 0), {}});
  }
  const auto classes = accumulator->class_metrics();
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].name, "averagePrecisionByClass");
  ASSERT_EQ(classes[0].values.size(), 3u);
  EXPECT_GT(classes[0].values[0].value(), 0.4);
  EXPECT_EQ(classes[0].values[1], std::nullopt);
  EXPECT_EQ(classes[0].values[2], 0.0);
  EXPECT_NEAR(value_of(accumulator->metrics(), "averagePrecision").value(),
              classes[0].values[0].value() / 2, 1e-9);
}

TEST_F(CocoMetricsTest, LeaveOutWhatThereIsNoObjectFor) {
  const auto accumulator = coco_metrics().make(*graph_, {});
  EXPECT_THAT(accumulator->metrics(), testing::IsEmpty());
  std::vector<float> target(static_cast<size_t>(model_.label_count));
  const detection::Object object{{0, 0, 1, 1}, 0, 1, false, 40 * 40};
  detection::write_objects(64, 64, std::span(&object, 1), target);
  const float* targets = target.data();
  Batch batch;
  batch.rows = 1;
  batch.targets = std::span(&targets, 1);
  accumulator->add({batch, outputs(inner_anchor(), 0), {}});
  std::vector<std::string> names;
  for (const Metric& metric : accumulator->metrics()) names.push_back(metric.name);
  EXPECT_THAT(names,
              testing::ElementsAre("averagePrecision", "averagePrecision50", "averagePrecision75",
                                   "averagePrecisionMedium", "averageRecall1", "averageRecall10",
                                   "averageRecall100", "averageRecallMedium"));
}

}  // namespace
}  // namespace muster::compute
