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

// A process by itself: standalone, or a job of one replica. `result` receives the content of
// result.json.
int run_alone(const group::Membership& membership, std::stop_token stop, Json* result);
// Rank 0 of a parameter-server job: trains, and leads the group.
int run_leader(const group::Membership& membership, std::stop_token stop);
int run_worker(const group::Membership& membership, std::stop_token stop);
int run_ps(const group::Membership& membership, std::stop_token stop);
int run_evaluator(const group::Membership& membership, std::stop_token stop);

// Runs the role that the environment asks for.
int run_replica(const group::Membership& membership, std::stop_token stop);

// `muster-trainer evaluate`, and `predict` with samples of the training's data (with pictures:
// predict_pictures.h). `where` is as for load_model(). `data` is "validation" or "test". Throws
// Invalid, with kUsage for data the training does not have and for an index that is no sample of
// them. Of a detector, only objects that have `least_score` are told.
Json evaluate_checkpoint(const std::filesystem::path& where, const std::string& data);
Json predict_checkpoint(const std::filesystem::path& where, const std::string& data,
                        const std::vector<int64_t>& indices, float least_score = 0);

}  // namespace muster::loop
