#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Which replicas to create: those that are wanted, whose record says neither succeeded nor failed,
// whose back-off is over and of whose index nothing lives. After a RestartJob or resuming nothing
// is created until all of the old run has gone. In the ending only the evaluator is, until it has
// evaluated.
void create_replicas(Draft& draft);

// Whether a replica that lives should be asked to leave now. ps leave last: in the ending when
// members and evaluators have gone; when suspending, failing or restarting everybody, when the
// members have.
bool must_leave(const Draft& draft, const ObservedReplica& replica);

// Asks those to leave that must, and forgets ended ones that cleanup (cleanup.h) does not keep.
void remove_replicas(Draft& draft);

// Whether a replica that the job wants, and that is not done, is not in view.
bool lacks_replicas(const api::TrainingJob& job, const Observed& observed);

}  // namespace muster::plan
