#pragma once

#include <stop_token>

#include "common/documents/document.h"
#include "trainer/group/membership.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// What a muster-trainer process does, by its role. Each returns the process's exit code (kSuccess,
// kTerminated) and throws what ends it otherwise; see run_guarded().

// A process by itself: standalone, or a job of one replica. `result` receives the content of
// result.json.
int run_alone(const group::Membership& membership, std::stop_token stop, Json* result);
// Rank 0 of a parameter-server job: trains, and leads the group.
int run_leader(const group::Membership& membership, Training training, std::stop_token stop);
int run_worker(const group::Membership& membership, Training training, std::stop_token stop);
int run_ps(const group::Membership& membership, std::stop_token stop);
int run_evaluator(const group::Membership& membership, std::stop_token stop);

// Runs the role that the environment asks for.
int run_replica(const group::Membership& membership, std::stop_token stop);

}  // namespace muster::loop
