// Evaluates cases that tests/python/check_coco.py writes to its input, and prints COCO's numbers of
// each on a line: the twelve, then the AP of each class. A case is, separated by blanks:
//   the number of labels, and the labels
//   the number of images, and for each its id, its detections and its objects:
//     how many; each detection: label score x y width height
//     how many; each object: label x y width height area crowd ignore

#include <cstdio>
#include <iostream>
#include <vector>

#include "trainer/detection/coco_evaluation.h"

namespace muster::detection {
namespace {

template <typename T>
T take() {
  T value{};
  if (!(std::cin >> value)) throw std::runtime_error("the input ends within a case");
  return value;
}

CocoBox take_box() {
  CocoBox box;
  box.x = take<double>();
  box.y = take<double>();
  box.width = take<double>();
  box.height = take<double>();
  return box;
}

std::vector<CocoDetection> take_detections() {
  std::vector<CocoDetection> detections(take<size_t>());
  for (CocoDetection& detection : detections) {
    detection.label = take<int32_t>();
    detection.score = take<double>();
    detection.box = take_box();
  }
  return detections;
}

std::vector<CocoObject> take_objects() {
  std::vector<CocoObject> objects(take<size_t>());
  for (CocoObject& object : objects) {
    object.label = take<int32_t>();
    object.box = take_box();
    object.area = take<double>();
    object.crowd = take<bool>();
    object.ignore = take<bool>();
  }
  return objects;
}

void evaluate(size_t count) {
  std::vector<int32_t> labels(count);
  for (int32_t& label : labels) label = take<int32_t>();
  CocoEvaluation evaluation(labels);
  const auto images = take<size_t>();
  for (size_t i = 0; i < images; ++i) {
    const auto image = take<int64_t>();
    const auto detections = take_detections();
    const auto objects = take_objects();
    evaluation.add(image, detections, objects);
  }
  const CocoMetrics m = evaluation.metrics();
  for (const double value : {m.ap, m.ap50, m.ap75, m.ap_small, m.ap_medium, m.ap_large, m.ar1,
                             m.ar10, m.ar100, m.ar_small, m.ar_medium, m.ar_large})
    std::printf("%.17g ", value);
  for (const double value : m.class_ap) std::printf("%.17g ", value);
  std::printf("\n");
}

}  // namespace
}  // namespace muster::detection

int main() try {
  for (size_t labels = 0; std::cin >> labels;) muster::detection::evaluate(labels);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 65;
}
