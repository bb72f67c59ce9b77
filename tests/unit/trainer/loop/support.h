#pragma once

#include <filesystem>
#include <string>

#include "trainer/group/membership.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// A folder of the test's own, empty; it goes when the program ends.
std::filesystem::path fresh_folder(const std::string& name);

// A small classification on synthetic blobs, with lines of YAML added at the end.
std::filesystem::path write_training(const std::filesystem::path& folder, const std::string& more);

// A process by itself on that training, storing below `folder`/job.
group::Membership alone(const std::filesystem::path& folder, const std::filesystem::path& training);

}  // namespace muster::loop
