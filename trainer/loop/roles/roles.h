#pragma once

#include <stop_token>

#include "common/documents/document.h"
#include "trainer/group/membership.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// The work of a muster-trainer process, by its role. Each function returns the process's exit code
// (kSuccess, kTerminated), and throws any other reason to end; see run_guarded().

// A process that trains alone: standalone, or a job of one replica. `result` receives the content
// of result.json.
int run_alone(const group::Membership& membership, std::stop_token stop, Json* result);
// Rank 0 of a parameter-server job: trains, and leads the group.
int run_leader(const group::Membership& membership, Training training, std::stop_token stop);
int run_worker(const group::Membership& membership, Training training, std::stop_token stop);
int run_ps(const group::Membership& membership, std::stop_token stop);
int run_evaluator(const group::Membership& membership, std::stop_token stop);

// Runs the role that the environment names.
int run_replica(const group::Membership& membership, std::stop_token stop);

}  // namespace muster::loop
