#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/images/box.h"
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
  std::vector<images::Box> boxes;  // image/object/...: those that are of use
  images::BoxProblems problems;    // of those that were read
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
// Both functions throw Invalid, which begins with `name`, for bytes that are no tf.train.Example,
// and name the feature that is missing, of another type or of another length than those beside it.
class ExampleReader {
 public:
  ExampleReader();
  ~ExampleReader();
  ExampleReader(const ExampleReader&) = delete;
  ExampleReader& operator=(const ExampleReader&) = delete;

  // With a label map a box has the id of its image/object/class/text, or where the example has no
  // texts its image/object/class/label; either must be in the map. Without one it has its label,
  // which must be at least 1.
  void read(std::string_view bytes, std::string_view name, const LabelMap* labels,
            DetectionExample& example);

  void read(std::string_view bytes, std::string_view name, ClassificationExample& example,
            const ClassificationKeys& keys = {});

 private:
  class Features;
  std::unique_ptr<Features> features_;
};

// Returns the bytes of a tf.train.Example with all of this; class texts are taken from `labels`, if
// it is not null and has the id.
std::string write_example(const DetectionExample& example, const LabelMap* labels);
std::string write_example(const ClassificationExample& example);

}  // namespace muster::records
