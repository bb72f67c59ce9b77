#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Creates the replicas that are wanted, are neither succeeded nor failed in their record, have
// their back-off over, and have no living attempt of their index. After a RestartJob or resuming
// nothing is created until all of the old run has gone. In the ending only the evaluator is
// created, until it has evaluated.
void create_replicas(Draft& draft);

// Whether a living replica should be asked to leave now. ps leave last: in the ending when members
// and evaluators have gone; when suspending, failing or restarting all replicas, when the members
// have gone.
bool must_leave(const Draft& draft, const ObservedReplica& replica);

// Asks the replicas to leave that must, and forgets ended ones that cleanup (cleanup.h) does not
// keep.
void remove_replicas(Draft& draft);

// Whether a replica that the job wants, and that is not done, is missing from the view.
bool lacks_replicas(const api::TrainingJob& job, const Observed& observed);

}  // namespace muster::plan
