#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "common/document.h"
#include "trainer/group/membership.h"

namespace muster::loop {

// What a muster-trainer process does, by its role. Each returns the process's exit code (kSuccess,
// kTerminated) and throws what ends it otherwise; see run_guarded().

// A process by itself: standalone, or a job of one replica. `result` receives what result.json
// says.
int run_alone(const group::Membership& membership, std::stop_token stop, Json* result);
// Rank 0 of a parameter-server job: trains, and leads the group.
int run_leader(const group::Membership& membership, std::stop_token stop);
int run_worker(const group::Membership& membership, std::stop_token stop);
int run_ps(const group::Membership& membership, std::stop_token stop);
int run_evaluator(const group::Membership& membership, std::stop_token stop);

// The one of the above that the environment asks for.
int run_replica(const group::Membership& membership, std::stop_token stop);

// `muster-trainer evaluate` and `predict` on a checkpoint's folder; its manifest says what it is.
// `data` is "validation" or "test". Throws Invalid.
Json evaluate_checkpoint(const std::filesystem::path& folder, const std::string& data);
Json predict_checkpoint(const std::filesystem::path& folder, const std::string& data,
                        const std::vector<uint64_t>& indices);

}  // namespace muster::loop
