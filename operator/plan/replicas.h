#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Creates each wanted replica that has neither succeeded nor failed by its record, whose back-off
// is over, and whose index has no living attempt. After a RestartJob or resuming nothing is created
// until all of the old run has gone. While the job is succeeding only the evaluator is created,
// until it has evaluated.
void create_replicas(Draft& draft);

// Whether a living replica should be asked to leave now. ps leave last: while the job is
// succeeding, after the members and evaluators; while it is suspending, failing or restarting all
// replicas, after the members.
bool must_leave(const Draft& draft, const ObservedReplica& replica);

// Asks the replicas that must leave to leave, and removes ended replicas that cleanPodPolicy does
// not keep.
void remove_replicas(Draft& draft);

// Whether the view lacks a replica that the job wants and that is not done.
bool lacks_replicas(const api::TrainingJob& job, const Observed& observed);

}  // namespace muster::plan
