#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Makes a record for every replica that is wanted or in view, sorted by role and index. A replica
// of a later attempt or run than the status knows means that the status is old or was lost: its
// numbers are adopted. That changes the status, so that if it was only old, the write conflicts and
// nothing is done.
void adopt_records(Draft& draft);

// Ends the current attempt in the record, so that the next one may be created.
void next_attempt(api::ReplicaRecord& record);

// Lists in counted_uids the ended replicas in view: all are accounted for by now. Replicas that
// have gone from view are dropped with the next change of the status, because they alone are not
// worth a write.
void list_counted(Draft& draft);

}  // namespace muster::plan
