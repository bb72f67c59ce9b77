#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Makes a record for every replica that is wanted or in view, sorted by role and index. If a
// replica has a later attempt or run than the status, the status is old or was lost, and the
// replica's numbers are adopted. This changes the status: if the status was only old, its write
// conflicts and nothing is done.
void adopt_records(Draft& draft);

// Ends the current attempt in the record, so that the next one may be created.
void next_attempt(api::ReplicaRecord& record);

// Lists the ended replicas in view in counted_uids. Call it after all of them are accounted for.
// Replicas that are no longer in view stay in the list until the status changes anyway, because
// they alone do not justify a write.
void list_counted(Draft& draft);

}  // namespace muster::plan
