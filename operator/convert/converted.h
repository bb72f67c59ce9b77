#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"

namespace muster::convert {

// A TrainingJob that was made from another format.
struct Converted {
  Json job;                         // without its schema's defaults
  std::vector<std::string> to_set;  // fields that the original does not determine: "FIELD: VALUE"
  std::vector<std::string> not_carried;  // a sentence for each setting that the job does not have
  std::vector<Document::Renamed> renamed = {};  // paths of the job that differ in the original
};

}  // namespace muster::convert
