#include "trainer/collective/plan.h"

#include <filesystem>
#include <string>

#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/collective/group_shape.h"
#include "trainer/group/position.h"

namespace muster::collective {

namespace {

void require_range(const std::string& what, int64_t found, int64_t least, int64_t most) {
  if (found >= least && found <= most) return;
  throw Invalid("the rendezvous: expected a plan of " + std::to_string(least) + " to " +
                    std::to_string(most) + " " + what + ", found " + std::to_string(found),
                kProtocol);
}

}  // namespace

void require_possible(const CollectivePlan& plan) {
  const int members = plan.members_size();
  require_range("members", members, 1, GroupShape::kMostMembers);
  require_range("logical replicas", plan.replicas(), members, GroupShape::kMostReplicas);
  if (!group::is_possible(plan.position()))
    throw Invalid(
        "the rendezvous: expected a plan from a position that training can have reached, "
        "found step " +
            std::to_string(plan.position().step()) + ", epoch " +
            std::to_string(plan.position().epoch()) + " and batch " +
            std::to_string(plan.position().next_batch()),
        kProtocol);
  const std::filesystem::path folder = plan.checkpoint();
  if (!folder.empty() && (folder.is_absolute() || *folder.lexically_normal().begin() == ".."))
    throw Invalid(
        "the rendezvous: expected a plan with a checkpoint below the job's storage, found "
        "\"" +
            plan.checkpoint() + "\"",
        kProtocol);
  if (plan.source() < static_cast<uint32_t>(members)) return;
  throw Invalid("the rendezvous: expected a plan whose state one of its " +
                    std::to_string(members) + " members brings, found that member " +
                    std::to_string(plan.source()) + " does",
                kProtocol);
}

int place_of(const CollectivePlan& plan, uint64_t incarnation) {
  for (int place = 0; place < plan.members_size(); ++place)
    if (plan.members(place).incarnation() == incarnation) return place;
  return -1;
}

bool holds_state(const CollectivePlan& plan, int place) {
  return place == static_cast<int>(plan.source()) || plan.members(place).has_state();
}

}  // namespace muster::collective
