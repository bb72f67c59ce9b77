#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "trainer/data/sources/dataset.h"
#include "trainer/spec/data_source.h"

namespace muster::data {

// The format of the samples that a model was trained on, and the names of its classes. Checkpoints
// and exported models keep it, so that new samples can be made for the model without its data.
struct SampleFormat {
  std::vector<int64_t> shape;  // of one sample: {28, 28}, or height, width and channels
  compute::ElementType type = compute::ElementType::float32;
  float scale = 1.0f;  // the value of a feature is element * scale + offset
  float offset = 0.0f;
  std::vector<std::string> classes;  // their names, in order; empty: they have none

  // Whether samples are pictures: bytes of one channel or of three.
  bool is_picture() const;
  int64_t channels() const { return shape.size() > 2 ? shape[2] : 1; }
  // Returns the name of a class; its number where it has none.
  std::string class_name(size_t index) const;

  bool operator==(const SampleFormat&) const = default;
};

SampleFormat format_of(const Dataset& dataset);

// Returns the format of a source's samples, for a model of a version of Muster that did not keep
// it. Throws Invalid where only the source's files tell it and they are not there.
SampleFormat format_of(const spec::DataSource& source);

Json to_json(const SampleFormat& format);
// Takes what to_json() returned. Throws Invalid, which begins with `where`, for anything else.
SampleFormat parse_format(const Json& json, const std::string& where);

}  // namespace muster::data
