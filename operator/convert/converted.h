#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"

namespace muster::convert {

// A TrainingJob that was made of something else.
struct Converted {
  Json job;                              // without its schema's defaults
  std::vector<std::string> to_set;       // what the original leaves open: "FIELD: VALUE"
  std::vector<std::string> not_carried;  // a sentence for each setting that the job does not have
  std::vector<Document::Renamed> renamed = {};  // of the job's paths, where the original has others
};

}  // namespace muster::convert
