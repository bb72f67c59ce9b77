#include "trainer/collective/member_flow.h"

#include <algorithm>
#include <utility>

#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/collective/plan.h"

namespace muster::collective {

namespace {
constexpr int kMostFailedLinks = 2;  // failed links in a row; then the host's memory is used
}

bool runs(const GroupView& view, uint64_t generation) {
  return view.phase() == GroupView::RUNNING && view.generation() == generation;
}

bool lets_go(const GroupView& view, uint64_t incarnation) {
  if (view.phase() == GroupView::FINISHED || view.phase() == GroupView::FAILED || view.stopping())
    return true;
  return view.has_collective() && place_of(view.collective(), incarnation) < 0;
}

int MemberFlow::place_in(const CollectivePlan& plan) const {
  return place_of(plan, incarnation_);
}

MemberFlow::Next MemberFlow::next(const GroupView& view) const {
  if (view.phase() == GroupView::FINISHED || view.phase() == GroupView::FAILED) return Next::end;
  const CollectivePlan& plan = view.collective();
  const uint64_t known = std::max(generation(), report_.failed());
  if (plan.generation() <= known || place_in(plan) < 0) return Next::wait;
  if (plan.generation() != report_.prepared()) return Next::prepare;
  return runs(view, plan.generation()) ? Next::enter : Next::wait;
}

bool MemberFlow::is_outdated(const CollectivePlan& plan, uint64_t step) const {
  if (plan.content() != CollectivePlan::KEEP || !holds_state(plan, place_in(plan))) return false;
  return generation() == 0 || plan.position().step() != step;
}

void MemberFlow::prepared(uint64_t generation, const std::string& endpoint) {
  report_.set_prepared(generation);
  report_.set_endpoint(endpoint);
}

void MemberFlow::failed(uint64_t generation) {
  report_.set_failed(generation);
}

void MemberFlow::memory_refused(const GroupView& view, const CollectivePlan& plan) {
  if (!runs(view, plan.generation())) return;
  const uint64_t source = plan.members(static_cast<int>(plan.source())).incarnation();
  if (std::exchange(refused_, source) == source) report_.set_unshared(source);
}

void MemberFlow::link_failed(const GroupView& view, const CollectivePlan& plan) {
  if (runs(view, plan.generation()) && ++failed_links_ >= kMostFailedLinks)
    report_.set_unlinked(true);
}

void MemberFlow::entered(uint64_t generation) {
  refused_ = 0;
  report_.set_generation(generation);
  report_.set_settled(false);
}

bool MemberFlow::made_step_after(uint64_t step, uint64_t found) const {
  if (found == step || found == step + 1) return found != step;
  throw Invalid("generation " + std::to_string(generation()) + ": expected a state of step " +
                    std::to_string(step) + " or " + std::to_string(step + 1) + ", found step " +
                    std::to_string(found),
                kProtocol);
}

void MemberFlow::settled(const PositionMessage& position) {
  *report_.mutable_position() = position;
  report_.set_settled(true);
}

void MemberFlow::compared(const CollectivePlan& plan, std::span<const int> odd) {
  if (!odd.empty()) report_.set_differed(plan.generation());
  const bool ours = std::ranges::find(odd, place_in(plan)) != odd.end();
  odd_in_a_row_ = ours ? odd_in_a_row_ + 1 : 0;
}

}  // namespace muster::collective
