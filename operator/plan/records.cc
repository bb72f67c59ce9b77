#include "operator/plan/records.h"

#include <algorithm>
#include <map>

namespace muster::plan {
namespace {

api::ReplicaRecord new_record(Role role, int index) {
  api::ReplicaRecord record;
  record.role = role;
  record.index = index;
  return record;
}

}  // namespace

void adopt_records(Draft& draft) {
  std::map<std::pair<Role, int>, api::ReplicaRecord> records;
  for (const api::ReplicaRecord& record : draft.status.records) {
    records.emplace(std::pair(record.role, record.index), record);
  }
  for (Role role : api::kRoles) {
    for (int index = 0; index < draft.desired(role); ++index) {
      records.try_emplace({role, index}, new_record(role, index));
    }
  }
  for (const ObservedReplica& replica : draft.observed.replicas) {
    auto [at, made] =
        records.try_emplace({replica.role, replica.index}, new_record(replica.role, replica.index));
    if (replica.attempt > at->second.attempt) {
      next_attempt(at->second);
      at->second.attempt = replica.attempt;
    }
    draft.status.run = std::max(draft.status.run, replica.run);
  }
  draft.status.records.clear();
  for (auto& [key, record] : records) draft.status.records.push_back(std::move(record));
}

void next_attempt(api::ReplicaRecord& record) {
  ++record.attempt;
  record.succeeded = false;
  record.failed = false;
  record.restarts_in_place = 0;
  record.replacing.clear();
}

void list_counted(Draft& draft) {
  std::vector<std::string> uids;
  for (const ObservedReplica& replica : draft.observed.replicas) {
    if (!is_live(replica)) uids.push_back(replica.uid);
  }
  std::ranges::sort(uids);
  const std::vector<std::string>& before = draft.job.status.counted_uids;
  const bool nothing_new = std::ranges::includes(before, uids);
  if (!nothing_new || draft.status != draft.job.status) draft.status.counted_uids = std::move(uids);
}

}  // namespace muster::plan
