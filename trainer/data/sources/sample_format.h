#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "trainer/compute/engine.h"
#include "trainer/spec/data_source.h"

namespace muster::data {

// The format of the samples that a model was trained on, and the names of its classes. Checkpoints
// and exported models keep it, so that new samples can be made for the model without its data.
struct SampleFormat {
  std::vector<int64_t> shape;  // shape of one sample: {28, 28}, or height, width and channels
  compute::ElementType type = compute::ElementType::float32;
  float scale = 1.0f;  // the value of a feature is element * scale + offset
  float offset = 0.0f;
  std::vector<std::string> classes;  // names of the classes, in order; empty: no names
  Json table = nullptr;  // how rows of a table become samples (data::Preparation); else null

  // Whether samples are pictures: bytes of one channel or of three.
  bool is_picture() const;
  uint64_t bytes() const;  // number of bytes of one sample's features
  int64_t channels() const { return shape.size() > 2 ? shape[2] : 1; }
  // Returns the name of a class, or its number if it has no name.
  std::string class_name(size_t index) const;

  bool operator==(const SampleFormat&) const = default;
};

// Returns the format of a source's samples, for a model from a version of Muster that did not save
// the format. Throws Invalid if only the source's files tell the format and the files do not exist.
SampleFormat format_of(const spec::DataSource& source);

Json to_json(const SampleFormat& format);
// Reads the result of to_json(). Throws Invalid, beginning with `where`, for anything else.
SampleFormat parse_format(const Json& json, const std::string& where);

}  // namespace muster::data
