#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Returns what the job's time is spent on after this plan, as far as the cluster shows it. While
// the leading replica tells a ledger of its own (job_ledger.h), that one is more exact.
// Precondition: report() has run.
TimeUse use_of_time(const Draft& draft);

}  // namespace muster::plan
