#include "operator/plan/stalls.h"

#include <string>

#include "common/documents/json.h"
#include "operator/plan/describe.h"

namespace muster::plan {
namespace {

constexpr const char* kStalled = "Stalled";

std::string describe_stall(const Json& stall) {
  const bool storage = bool_or(stall, "storage", false);
  return clean_line(string_or(stall, "replica", "?")) +
         (storage ? " waits for its storage since " : " has given no sign of life since ") +
         clean_line(string_or(stall, "since", "?")) + ": " +
         clean_line(string_or(stall, "doing", "?"));
}

}  // namespace

void report_stalls(Draft& draft) {
  const Json& stalls = member(draft.status.progress, "stalled");
  const bool before = draft.status.is_true(kStalled);
  if (draft.stage() != Stage::active || !stalls.is_array() || stalls.empty()) {
    if (before) draft.set(kStalled, false, "GoesOn", "nothing stands still any more");
    return;
  }
  // Storage is named first, because other stalled work may only be waiting for it.
  const Json* worst = &stalls.front();
  for (const Json& stall : stalls) {
    if (bool_or(*worst, "storage", false)) break;
    if (bool_or(stall, "storage", false)) worst = &stall;
  }
  std::string message = describe_stall(*worst);
  if (stalls.size() > 1) message += "; and " + std::to_string(stalls.size() - 1) + " more";
  const char* const reason = bool_or(*worst, "storage", false) ? "StorageHangs" : "ReplicaHangs";
  draft.set(kStalled, true, reason, message);
  if (!before) draft.warn(reason, message);
}

}  // namespace muster::plan
