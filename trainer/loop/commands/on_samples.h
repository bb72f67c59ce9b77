#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/documents/document.h"

namespace muster::loop {

// `muster-trainer evaluate`, and `predict` with samples of the training's data (with pictures:
// predict_pictures.h). `where` is as for load_model(). `data` is "validation" or "test". Throws
// Invalid, with kUsage for data that the training does not have and for an index without a sample.
// For a detector, only objects with at least `least_score` are returned.
Json evaluate_checkpoint(const std::filesystem::path& where, const std::string& data);
Json predict_checkpoint(const std::filesystem::path& where, const std::string& data,
                        const std::vector<int64_t>& indices, float least_score = 0);

}  // namespace muster::loop
