#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"
#include "proto/muster/pipeline.pb.h"

namespace muster::convert {

// Returns the number as a person has written it: 0.004, where a float32 is 0.00400000018998....
double as_written(float number);
// Returns as_written() as a text.
std::string shown(float number);

struct LearningRateFields {
  double rate = 0;                       // optimizer.learningRate
  Json schedule;                         // learningRateSchedule; null: the rate is constant
  std::vector<std::string> not_carried;  // "learning_rate.FIELD: ..."
};

// Returns a learning rate of the TF Object Detection API as fields of a TrainingJob.
LearningRateFields learning_rate_of(const pipeline::LearningRate& given);

}  // namespace muster::convert
