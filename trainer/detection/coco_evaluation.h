#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

namespace muster::detection {

// COCO's metrics group objects by their area: the most pixels of a small and of a medium object.
constexpr double kMostSmall = 32.0 * 32;
constexpr double kMostMedium = 96.0 * 96;

// A box in pixels of its image, in COCO's form: the upper left corner and the size.
struct CocoBox {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

// A box that a detector has found.
struct CocoDetection {
  int32_t label = 0;
  double score = 0;
  CocoBox box;
};

// An object of the ground truth.
struct CocoObject {
  int32_t label = 0;
  CocoBox box;
  double area = 0;     // area in pixels: of the object's mask if it has one, else of its box
  bool crowd = false;  // many objects: any number of detections may match it, and none counts
  // Whether the object is optional: a detection that matches it does not count. pycocotools
  // overwrites this field with iscrowd; apart from that its numbers are the same.
  bool ignore = false;
};

// COCO's twelve numbers, each from 0 to 1, or -1 if there are no objects to find. An average
// precision (AP) is the mean over recalls 0, 0.01, ..., 1 of the highest precision at that recall
// or a higher one. An average recall (AR) is the mean of the recalls of a class's best detections
// in each image: the best 100, unless stated otherwise. Both are means over the classes that have
// objects and, unless stated otherwise, over the IoU thresholds 0.5, 0.55, ..., 0.95.
struct CocoMetrics {
  double ap = -1;
  double ap50 = -1;  // at IoU 0.5
  double ap75 = -1;
  double ap_small = -1;   // for objects up to 32 x 32 pixels
  double ap_medium = -1;  // for objects from 32 x 32 to 96 x 96 pixels
  double ap_large = -1;   // for objects from 96 x 96 pixels on
  double ar1 = -1;        // with the best detection of a class in each image
  double ar10 = -1;
  double ar100 = -1;
  double ar_small = -1;
  double ar_medium = -1;
  double ar_large = -1;
  std::vector<double> class_ap;  // `ap` of each class alone, in the order of the labels
};

// Evaluates detections as COCO does (https://cocodataset.org/#detection-eval, and COCOeval of
// pycocotools, with boxes): the numbers equal those of pycocotools. They do not depend on the order
// in which images were added, because the images' ids decide between equal scores. Boxes that are
// not finite overlap nothing; a score that is NaN is the lowest.
class CocoEvaluation {
 public:
  // `labels` are the classes to evaluate. Detections and objects with other labels are left out.
  // Throws Invalid if a label occurs twice.
  explicit CocoEvaluation(std::vector<int32_t> labels);

  // Takes the results of an image, which may have neither detections nor objects. Where scores are
  // equal, the earlier detection comes first. Throws Invalid if the image was added before.
  void add(int64_t image, std::span<const CocoDetection> detections,
           std::span<const CocoObject> objects);

  size_t images() const { return images_.size(); }
  CocoMetrics metrics() const;

 private:
  static constexpr size_t kAreas = 4;  // all, small, medium, large

  // A detection. A bit for each IoU threshold says whether it matches an object, and whether it is
  // left out.
  struct Ranked {
    double score = 0;
    int64_t image = 0;
    int32_t rank = 0;  // among the detections of its class in its image, from 0
    std::array<uint16_t, kAreas> matched{};
    std::array<uint16_t, kAreas> ignored{};
  };
  struct PerClass {
    std::vector<Ranked> detections;
    std::array<int64_t, kAreas> objects{};  // number of objects to find
  };
  struct Curve;

  void add_class(PerClass& to, int64_t image, std::span<const CocoDetection> detections,
                 std::span<const CocoObject> objects);
  static Curve curve(std::span<const Ranked> ranked, int64_t objects, size_t area,
                     int32_t detections, size_t threshold);

  std::vector<int32_t> labels_;
  std::vector<PerClass> classes_;  // for each label
  std::unordered_set<int64_t> images_;
};

}  // namespace muster::detection
