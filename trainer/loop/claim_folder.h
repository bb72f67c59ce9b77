#pragma once

#include <memory>
#include <stop_token>

#include "trainer/folder/claim.h"
#include "trainer/group/membership.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// The job's hold on its folder, for its rank 0: see folder::Claim::take, and throws as that does; a
// storage that is full is waited for. Null where `stop` was requested meanwhile. Precondition: the
// membership has a storage folder.
std::unique_ptr<folder::Claim> claim_folder(const group::Membership& membership,
                                            const Training& training, const std::stop_token& stop);

}  // namespace muster::loop
