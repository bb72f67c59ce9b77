#include "trainer/collective/collective_formation.h"

#include <algorithm>
#include <utility>

namespace muster::collective {

namespace {

using Members = std::map<int, const group::PeerRegistry::Peer*>;

// Returns the members that take part. A leaving member of an elastic group takes part only if the
// group would be too small without it, because the group would otherwise wait until another member
// comes.
Members participants(const group::PeerRegistry& registry, int least) {
  const Members all = registry.members();
  if (least == 0) return all;
  Members members = all;
  std::erase_if(members, [](const auto& entry) { return entry.second->leaving; });
  for (auto one = all.begin(); one != all.end() && static_cast<int>(members.size()) < least; ++one)
    members.insert(*one);
  return members;
}

// Whether one of the members cannot use another member's memory.
bool any_unshared(const Members& members) {
  return std::ranges::any_of(members, [&](const auto& entry) {
    const uint64_t other = entry.second->member.unshared();
    return other != 0 && std::ranges::any_of(members, [&](const auto& candidate) {
             return candidate.second->hello.incarnation() == other;
           });
  });
}

// Whether the members' updates have the same bits.
bool update_alike(const Members& members) {
  const auto fuses = [](const auto& entry) { return entry.second->hello.fuses(); };
  return std::ranges::all_of(members, fuses) || std::ranges::none_of(members, fuses);
}

// Returns why the members' GPUs cannot exchange gradients directly; "" if they can, or if no member
// has a GPU.
std::string why_not_linked(const Members& members, const CollectiveFormation::Setup& setup,
                           int replicas, bool one_host) {
  const auto rank_of = [](const auto& entry) { return "rank " + std::to_string(entry.first); };
  std::map<std::string, std::string> owners;
  const auto has_gpus = [](const auto& entry) {
    return entry.second->hello.gpus_size() > 0 || !entry.second->hello.why_unlinked().empty();
  };
  if (std::ranges::none_of(members, has_gpus)) return "";
  for (const auto& member : members) {
    const auto& [rank, peer] = member;
    if (!peer->hello.why_unlinked().empty())
      return rank_of(member) + ": " + peer->hello.why_unlinked();
    if (peer->hello.gpus_size() != setup.devices)
      return rank_of(member) + " computes on " + std::to_string(peer->hello.gpus_size()) +
             " GPUs, not on " + std::to_string(setup.devices);
    if (peer->member.unlinked()) return rank_of(member) + " could not be linked with the others";
    for (const std::string& gpu : peer->hello.gpus()) {
      const auto [other, is_new] = owners.emplace(gpu, rank_of(member));
      if (is_new) continue;
      if (other->second == rank_of(member))
        return "two devices of " + other->second + " share a GPU";
      return other->second + " and " + rank_of(member) + " have the same GPU";
    }
  }
  if (replicas != static_cast<int>(members.size()) * setup.devices)
    return std::to_string(replicas) + " logical replicas have fewer GPUs";
  if (setup.link == CollectiveFormation::Link::on_one_host && !one_host)
    return "what NCCL sends between hosts would not be encrypted (synchronization.nccl: always "
           "allows it)";
  return "";
}

using Progress = std::pair<uint64_t, uint64_t>;  // generation and step

Progress progress(const MemberState& state) {
  return {state.generation(), state.position().step()};
}

}  // namespace

void CollectiveFormation::claimed(uint64_t generation) {
  begin(generation);
  plan_ = {};
  plan_.set_generation(generation);
  proceed(Next::fence);
}

void CollectiveFormation::fenced(uint64_t published) {
  published_ = published;
  proceed(Next::gather);
}

void CollectiveFormation::look(const group::PeerRegistry& registry, Time now) {
  if (next() == Next::watch && outdated(registry)) proceed(Next::claim);
  if (next() == Next::assemble) assemble(registry);
  if (next() == Next::gather) gather(registry, now);
}

bool CollectiveFormation::is_complete(size_t members, Time now) const {
  const int count = static_cast<int>(members);
  if (!elastic()) return count == setup_.members;
  return count >= setup_.least && (formed_ || count >= setup_.members || now - since_ >= kMuster);
}

void CollectiveFormation::gather(const group::PeerRegistry& registry, Time now) {
  const auto members = participants(registry, setup_.least);
  bool settled = true;
  for (const auto& [rank, peer] : members) {
    const MemberState& state = peer->member;
    meet(std::max(state.generation(), state.prepared()));
    settled &= state.generation() == 0 || state.settled();
  }
  if (!settled || !is_complete(members.size(), now)) return;
  if (is_behind())
    proceed(Next::claim);
  else
    decide(registry);
}

void CollectiveFormation::decide(const group::PeerRegistry& registry) {
  const auto members = participants(registry, setup_.least);
  const MemberState* best = nullptr;
  uint64_t differed = 0;
  std::string host;
  bool one_host = !any_unshared(members);
  plan_.clear_members();
  for (const auto& [rank, peer] : members) {
    const MemberState& state = peer->member;
    differed = std::max(differed, state.differed());
    if (state.generation() > 0 && (!best || progress(state) > progress(*best))) {
      best = &state;
      plan_.set_source(static_cast<uint32_t>(plan_.members_size()));
    }
    MemberPlace& place = *plan_.add_members();
    place.set_rank(static_cast<uint32_t>(rank));
    place.set_incarnation(peer->hello.incarnation());
    if (plan_.members_size() == 1) host = peer->hello.host();
    one_host &= !host.empty() && peer->hello.host() == host;
  }
  plan_.set_comparable(update_alike(members));
  const int replicas =
      setup_.replicas > 0 ? setup_.replicas : plan_.members_size() * setup_.devices;
  plan_.set_replicas(static_cast<uint32_t>(replicas));
  why_unlinked_ = why_not_linked(members, setup_, replicas, one_host);
  plan_.set_linked_gpus(why_unlinked_.empty() && members.begin()->second->hello.gpus_size() > 0);
  plan_.set_shared_memory(one_host && !plan_.linked_gpus());
  // If a later generation than any survivor's has published checkpoints, the survivors' states are
  // outdated.
  const bool is_behind_storage = best && published_ > best->generation();
  const bool differ = best && differed >= best->generation();
  if (!best || is_behind_storage || differ) {
    plan_.set_source(0);
    basis_ = is_behind_storage || !best ? Progress{published_, 0} : progress(*best);
    explain(is_behind_storage ? "a later checkpoint than what any member holds"
            : differ          ? "the members' states differ"
                              : "no member holds any state");
    proceed(Next::choose);
    return;
  }
  // Members that round differently have states with different bits, so all take the source's state.
  for (MemberPlace& place : *plan_.mutable_members()) {
    const MemberState& state = members.at(static_cast<int>(place.rank()))->member;
    place.set_has_state(progress(state) == progress(*best) && plan_.comparable());
  }
  basis_ = progress(*best);
  plan_.set_content(CollectivePlan::KEEP);
  *plan_.mutable_position() = best->position();
  explain("what rank " + std::to_string(plan_.members(plan_.source()).rank()) +
          " holds of generation " + std::to_string(best->generation()));
  proceed(Next::announce);
}

void CollectiveFormation::chosen(const std::optional<Checkpoint>& newest) {
  plan_.set_content(newest ? CollectivePlan::RESTORE : CollectivePlan::INITIALIZE);
  if (newest) {
    plan_.set_checkpoint(newest->folder);
    *plan_.mutable_position() = newest->position;
  }
  proceed(Next::announce);
}

// A member's report of its state is final only after the member has prepared itself: after
// settling, it may have entered an earlier generation and made more steps there.
void CollectiveFormation::assemble(const group::PeerRegistry& registry) {
  if (outdated(registry)) {
    proceed(Next::claim);
    return;
  }
  const auto members = registry.members();
  for (MemberPlace& place : *plan_.mutable_members()) {
    const auto found = members.find(static_cast<int>(place.rank()));
    if (found == members.end() || found->second->member.prepared() != plan_.generation()) return;
    const MemberState& state = found->second->member;
    if (progress(state) > basis_) {
      proceed(Next::claim);
      return;
    }
    place.set_endpoint(state.endpoint());
  }
  proceed(Next::run);
}

bool CollectiveFormation::is_planned(int rank) const {
  return std::ranges::any_of(plan_.members(), [rank](const MemberPlace& place) {
    return static_cast<int>(place.rank()) == rank;
  });
}

// Whether the group no longer matches the plan. Without elasticity an absent member may come back
// with its state; only a new process in its place has no state.
bool CollectiveFormation::outdated(const group::PeerRegistry& registry) const {
  const auto members = participants(registry, setup_.least);
  for (const MemberPlace& place : plan_.members()) {
    const auto found = members.find(static_cast<int>(place.rank()));
    if (found == members.end()) {
      if (elastic()) return true;
      continue;
    }
    const MemberState& state = found->second->member;
    if (found->second->hello.incarnation() != place.incarnation() ||
        (state.generation() == plan_.generation() && state.settled()) ||
        state.failed() == plan_.generation())
      return true;
  }
  return std::ranges::any_of(members, [&](const auto& entry) { return !is_planned(entry.first); });
}

void CollectiveFormation::announce(GroupView& view) const {
  if (view.phase() == GroupView::FINISHED || view.phase() == GroupView::FAILED) return;
  *view.mutable_collective() = plan_;
  if (next() != Next::run) return;
  view.set_generation(plan_.generation());
  view.set_phase(GroupView::RUNNING);
}

void CollectiveFormation::running() {
  formed_ = true;
  proceed(Next::watch);
}

}  // namespace muster::collective
