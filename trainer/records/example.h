#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/images/box.h"
#include "trainer/images/name.h"
#include "trainer/records/label_map.h"

namespace muster::records {

// A tf.train.Example as the Object Detection API writes it.
struct DetectionExample {
  std::string image;               // image/encoded: the bytes of a JPEG or PNG
  std::string format;              // image/format: "jpeg" or "png"; empty: not given
  std::string filename;            // image/filename; empty: not given
  std::string source_id;           // image/source_id; empty: not given
  int64_t height = 0;              // image/height; 0: not given
  int64_t width = 0;               // image/width; 0: not given
  std::vector<images::Box> boxes;  // image/object/...: the usable boxes
  images::BoxProblems problems;    // problems of the boxes that were read
};

// A tf.train.Example of an image with a class.
struct ClassificationExample {
  std::string image;  // image/encoded
  int64_t label = 0;  // image/class/label
  std::string text;   // image/class/text; empty: not given
};

// The names of the features that a ClassificationExample is read from.
struct ClassificationKeys {
  std::string image = "image/encoded";
  std::string label = "image/class/label";
};

// Reads examples, one after the other, and keeps its memory. Only one thread may use it at a time.
// Both functions throw Invalid, beginning with `name`, for bytes that are not a tf.train.Example,
// and for a feature that is missing, has another type, or differs in length from the related
// features; the error names the feature.
class ExampleReader {
 public:
  ExampleReader();
  ~ExampleReader();
  ExampleReader(const ExampleReader&) = delete;
  ExampleReader& operator=(const ExampleReader&) = delete;

  // With a label map, a box gets the id of its image/object/class/text, or, if the example has no
  // texts, its image/object/class/label; text or label must be in the map. Without a label map it
  // gets its label, which must be at least 1.
  void read(std::string_view bytes, const images::Name& name, const LabelMap* labels,
            DetectionExample& example);

  void read(std::string_view bytes, const images::Name& name, ClassificationExample& example,
            const ClassificationKeys& keys = {});

 private:
  class Features;
  std::unique_ptr<Features> features_;
};

// Returns the bytes of a tf.train.Example with all fields of `example`; class texts come from
// `labels`, if it is not null and has the id.
std::string write_example(const DetectionExample& example, const LabelMap* labels);
std::string write_example(const ClassificationExample& example);

}  // namespace muster::records
