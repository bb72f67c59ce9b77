#include "operator/plan/startup.h"

namespace muster::plan {
namespace {

bool is_ready(const Draft& draft, Role role) {
  for (int index = 0; index < draft.desired(role); ++index) {
    const ObservedReplica* replica = draft.current(role, index);
    const bool ready = replica && replica->phase == Phase::running && replica->ready;
    const api::ReplicaRecord& record = draft.record(role, index);
    if (!ready && !record.succeeded && !record.failed) return false;
  }
  return true;
}

}  // namespace

bool may_start(const Draft& draft, Role role) {
  if (draft.job.startup_order == api::StartupOrder::any) return true;
  for (Role earlier : api::kRoles) {
    if (earlier == role) break;
    if (!is_ready(draft, earlier)) return false;
  }
  return true;
}

}  // namespace muster::plan
