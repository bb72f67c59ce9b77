#pragma once

#include <memory>
#include <stop_token>

#include "trainer/folder/claim.h"
#include "trainer/group/membership.h"
#include "trainer/loop/training.h"
#include "trainer/metrics/progress.h"

namespace muster::loop {

// The job's hold on its folder, for its rank 0: see folder::Claim::take, and throws as that does; a
// storage that is full is waited for. Null where `stop` was requested meanwhile. A folder without
// an owner belongs to the job that its newest checkpoint names. /progress says for whom it waits.
// Precondition: the membership has a storage folder.
std::unique_ptr<folder::Claim> claim_folder(const group::Membership& membership,
                                            const Training& training, metrics::Reporter& reporter,
                                            const std::stop_token& stop);

}  // namespace muster::loop
