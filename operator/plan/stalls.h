#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Sets Stalled from the last observed progress: whether a replica's work gives no sign of life
// (ReplicaHangs, or StorageHangs if it waits for a file system). A job that has never stalled does
// not have the condition. Precondition: report_progress() has run.
void report_stalls(Draft& draft);

}  // namespace muster::plan
