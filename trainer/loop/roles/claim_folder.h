#pragma once

#include <memory>
#include <stop_token>

#include "trainer/folder/claim.h"
#include "trainer/group/membership.h"
#include "trainer/loop/training.h"
#include "trainer/metrics/reporter.h"

namespace muster::loop {

// Claims the job's folder for the job's rank 0 by folder::Claim::take, and throws the same errors.
// Waits while the storage is full. Returns null if `stop` was requested. A folder without an owner
// belongs to the job that its newest checkpoint names. /progress says which other job the claim
// waits for. Precondition: the membership has a storage folder.
std::unique_ptr<folder::Claim> claim_folder(const group::Membership& membership,
                                            const Training& training, metrics::Reporter& reporter,
                                            const std::stop_token& stop);

}  // namespace muster::loop
