#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Sets Stalled: whether a replica's work gives no sign of life (ReplicaHangs, or StorageHangs where
// it waits for a file system), by the progress that was observed last. A job in which nothing has
// stood still yet has no such condition. Precondition: report_progress() has run.
void report_stalls(Draft& draft);

}  // namespace muster::plan
