#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/trainer/collective/support.h"
#include "trainer/collective/wire_group.h"

namespace muster::collective::testing {

// Runs work(member) on a thread for each of so many. If one has not come back after a minute, the
// program is aborted: it hangs.
void run_members(int members, const std::function<void(int member)>& work);

// The members of one host, whose memory holds the state.
std::vector<std::unique_ptr<HostSession>> shared_sessions(const Reference& reference, int members,
                                                          const Reference::State& state);

// The members that reach each other by TCP; connected. SIGPIPE is ignored from here on, as by the
// trainer.
std::vector<std::unique_ptr<WireGroup>> wire_groups(const GroupShape& shape, size_t floats,
                                                    size_t bucket = WireGroup::kBucket);
std::vector<std::unique_ptr<HostSession>> wire_sessions(const Reference& reference, int members,
                                                        const Reference::State& state);

// Never ends a wait.
Session::Watch patient();

}  // namespace muster::collective::testing
