#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/compute/parameter_layout.h"
#include "trainer/spec/training_spec.h"

namespace muster::ps {

// What a job starts from: the initializers, then training.initializeFrom where there is one. Fills
// layout.size() floats: a function of the spec and that file only.
void fill_initial_parameters(const spec::TrainingSpec& spec, const compute::ParameterLayout& layout,
                             std::span<float> parameters);

// Copies every tensor whose name and shape match from a checkpoint folder or a safetensors file;
// logs the others by name and returns them. Throws Invalid if none matches, or the file is
// malformed.
std::vector<std::string> copy_matching(const std::filesystem::path& from,
                                       const compute::ParameterLayout& layout,
                                       std::span<float> parameters);

}  // namespace muster::ps
