#include <numeric>

#include "trainer/compute/graph.h"
#include "trainer/compute/metrics/evaluator.h"
#include "trainer/compute/models/object_finder.h"
#include "trainer/detection/coco_evaluation.h"
#include "trainer/detection/objects.h"

namespace muster::compute {
namespace {

using detection::CocoMetrics;

struct Number {
  const char* name;
  double CocoMetrics::*value;
};
constexpr Number kNumbers[] = {{"averagePrecision", &CocoMetrics::ap},
                               {"averagePrecision50", &CocoMetrics::ap50},
                               {"averagePrecision75", &CocoMetrics::ap75},
                               {"averagePrecisionSmall", &CocoMetrics::ap_small},
                               {"averagePrecisionMedium", &CocoMetrics::ap_medium},
                               {"averagePrecisionLarge", &CocoMetrics::ap_large},
                               {"averageRecall1", &CocoMetrics::ar1},
                               {"averageRecall10", &CocoMetrics::ar10},
                               {"averageRecall100", &CocoMetrics::ar100},
                               {"averageRecallSmall", &CocoMetrics::ar_small},
                               {"averageRecallMedium", &CocoMetrics::ar_medium},
                               {"averageRecallLarge", &CocoMetrics::ar_large}};

std::vector<int32_t> labels_of(int64_t classes) {
  std::vector<int32_t> labels(static_cast<size_t>(classes));
  std::iota(labels.begin(), labels.end(), 0);
  return labels;
}

// Boxes in pixels of the original image.
detection::CocoBox in_pixels(const detection::Box& box, const detection::ObjectList& image) {
  const double height = double(image.height()), width = double(image.width());
  return {double(box.xmin) * width, double(box.ymin) * height,
          (double(box.xmax) - double(box.xmin)) * width,
          (double(box.ymax) - double(box.ymin)) * height};
}

class Coco : public Accumulator {
 public:
  Coco(const SsdLoss& loss, const Graph& graph)
      : finder_(loss, graph),
        target_floats_(static_cast<size_t>(graph.label_count)),
        evaluation_(labels_of(loss.classes)) {}

  void add(const EvaluatedRows& rows) override {
    const size_t width = finder_.outputs();
    for (size_t row = 0; row < static_cast<size_t>(rows.batch.rows); ++row) {
      const detection::ObjectList image({rows.batch.targets[row], target_floats_});
      std::vector<detection::CocoDetection> found;
      for (const detection::Detection& one : finder_.find(rows.outputs.subspan(row * width, width)))
        found.push_back({one.label, double(one.score), in_pixels(one.box, image)});
      std::vector<detection::CocoObject> objects;
      for (size_t i = 0; i < image.size(); ++i) {
        const detection::Object object = image.at(i);
        objects.push_back(
            {object.label, in_pixels(object.box, image), double(object.area), object.crowd, false});
      }
      evaluation_.add(images_++, found, objects);
    }
  }

  std::vector<Metric> metrics() const override {
    const CocoMetrics found = evaluation_.metrics();
    std::vector<Metric> metrics;
    for (const Number& number : kNumbers)
      if (found.*number.value >= 0) metrics.push_back({number.name, found.*number.value});
    return metrics;
  }

  std::vector<ClassMetric> class_metrics() const override {
    ClassMetric precision{"averagePrecisionByClass", {}};
    for (const double value : evaluation_.metrics().class_ap)
      precision.values.push_back(value < 0 ? std::nullopt : std::optional(value));
    return {std::move(precision)};
  }

 private:
  ObjectFinder finder_;
  const size_t target_floats_;
  detection::CocoEvaluation evaluation_;
  int64_t images_ = 0;
};

}  // namespace

Evaluator coco_metrics() {
  Evaluator evaluator;
  for (const Number& number : kNumbers) evaluator.metrics.push_back({number.name, Better::higher});
  evaluator.make = [](const Graph& graph, const Measuring&) -> std::unique_ptr<Accumulator> {
    return std::make_unique<Coco>(std::get<SsdLoss>(graph.loss), graph);
  };
  return evaluator;
}

}  // namespace muster::compute
