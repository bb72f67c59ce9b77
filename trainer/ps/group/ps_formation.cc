#include "trainer/ps/group/ps_formation.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace muster::ps {

bool left_behind(const GroupView& view, uint64_t generation) {
  return view.generation() != generation || view.phase() == GroupView::FAILED ||
         view.phase() == GroupView::FINISHED;
}

std::vector<int> serving_of(const GroupView& view, int shards) {
  std::vector<int> serving(static_cast<size_t>(shards));
  for (int shard = 0; shard < shards; ++shard) {
    const bool known =
        shard < view.places_size() && view.places(shard).ps() < static_cast<uint32_t>(shards);
    serving[static_cast<size_t>(shard)] = known ? static_cast<int>(view.places(shard).ps()) : shard;
  }
  return serving;
}

std::optional<uint64_t> common_step(const std::vector<SnapshotReply>& copies, uint64_t least) {
  const uint64_t step = copies.front().state().step();
  for (const SnapshotReply& copy : copies)
    if (copy.state().step() != step) return std::nullopt;
  if (step < least) return std::nullopt;
  return step;
}

PsFormation::PsFormation(int shards, bool sync, OpenRequest common, int copies)
    : shards_(shards),
      sync_(sync),
      common_(std::move(common)),
      copies_(std::min(copies, shards)),
      incarnations_(static_cast<size_t>(shards)),
      places_(static_cast<size_t>(shards)) {}

void PsFormation::claimed(uint64_t generation) {
  begin(generation);
  request_ = common_;
  request_.set_generation(generation);
  proceed(Next::fence);
}

void PsFormation::look(const group::PeerRegistry& registry) {
  if (next() == Next::watch && overtaken(registry)) proceed(Next::claim);
  if (next() == Next::watch && welcome(registry)) proceed(Next::assign);
  if (next() == Next::gather) gather(registry);
}

void PsFormation::gather(const group::PeerRegistry& registry) {
  bool all_here = true;
  since_ = announced_;
  for (int ps = 0; ps < shards_; ++ps) {
    const group::PeerRegistry::Peer* const peer = registry.ps(ps);
    incarnations_[static_cast<size_t>(ps)] = peer ? peer->hello.incarnation() : 0;
    all_here &= peer != nullptr;
    if (!peer) continue;
    for (const ShardState& state : peer->shards) {
      meet(state.generation());
      if (state.differs()) differing_ = std::max(differing_, state.lineage());
      if (state.used()) since_ = std::max(since_, state.generation());
    }
  }
  // A ps that has not come yet does not count as lost: only a leader that has already led the group
  // can know that a ps is lost.
  if (!all_here && (copies_ == 1 || announced_ == 0)) return;
  // The shards know generations that are missing on the storage.
  if (is_behind())
    proceed(Next::claim);
  else
    decide(registry, all_here);
}

// Whether a shard has come back without its state, or a ps is lost whose shards have another copy.
// A ps that has only lost its stream, or is coming back, may still hold its state: if there is no
// other copy, we wait.
bool PsFormation::overtaken(const group::PeerRegistry& registry) const {
  for (int ps = 0; ps < shards_; ++ps) {
    const uint64_t known = incarnations_[static_cast<size_t>(ps)];
    if (known == 0) continue;
    const group::PeerRegistry::Peer* const peer = registry.ps(ps);
    if (!peer) {
      if (copies_ > 1 && is_covered(registry, ps)) return true;
      continue;
    }
    if (peer->hello.incarnation() != known) return true;
    for (const ShardState& state : peer->shards)
      if (state.generation() == announced_ && (state.standby_lost() || state.differs()))
        return true;
  }
  return false;
}

bool PsFormation::is_covered(const group::PeerRegistry& registry, int lost) const {
  for (int shard = 0; shard < shards_; ++shard) {
    if (places_[static_cast<size_t>(shard)].ps != lost) continue;
    const std::vector<Copy> copies = copies_of(registry, shard);
    if (std::none_of(copies.begin(), copies.end(), [&](const Copy& copy) {
          return copy.state.generation() >= announced_ &&
                 (copy.state.serving() || copy.state.whole());
        }))
      return false;
  }
  return true;
}

int PsFormation::other_home(int shard, int ps) const {
  return ps == shard ? (shard + 1) % shards_ : shard;
}

std::vector<PsFormation::Copy> PsFormation::copies_of(const group::PeerRegistry& registry,
                                                      int shard) const {
  std::vector<Copy> copies;
  for (int ps = shard; static_cast<int>(copies.size()) < copies_ && ps < shard + copies_; ++ps) {
    const int home = ps % shards_;
    const ShardState* const state = registry.held(home, shard);
    if (!state) continue;
    Copy copy{home, registry.ps(home)->hello.incarnation(), *state};
    for (const Copy& opened : opened_)
      if (opened.incarnation == copy.incarnation &&
          static_cast<int>(opened.state.shard()) == shard &&
          opened.state.generation() > copy.state.generation())
        copy.state = opened.state;
    copies.push_back(std::move(copy));
  }
  return copies;
}

bool PsFormation::counts(const ShardState& state, uint64_t lineage) const {
  return state.lineage() == lineage && state.generation() >= since_ &&
         (state.serving() || state.whole());
}

void PsFormation::decide(const group::PeerRegistry& registry, bool all_here) {
  std::set<uint64_t, std::greater<>> lineages;
  for (int shard = 0; shard < shards_; ++shard)
    for (const Copy& copy : copies_of(registry, shard)) lineages.insert(copy.state.lineage());
  lineages.erase(0);
  const bool differs =
      std::erase_if(lineages, [this](uint64_t lineage) { return lineage <= differing_; }) > 0;
  for (const uint64_t lineage : lineages)
    if (!torn_ && keep(registry, lineage)) {
      proceed(Next::open);
      return;
    }
  if (!all_here) return;  // a missing ps may still have the state
  explain(differs            ? "the two copies of a shard differ"
          : lineages.empty() ? "the shards are empty"
                             : "a shard has lost its state");
  proceed(Next::choose);
}

// Places every shard at a copy of this lineage; returns false if a shard has none.
bool PsFormation::keep(const group::PeerRegistry& registry, uint64_t lineage) {
  std::vector<Place> places;
  std::string moved;
  PositionMessage base;
  for (int shard = 0; shard < shards_; ++shard) {
    std::vector<Copy> copies = copies_of(registry, shard);
    std::erase_if(copies, [&](const Copy& copy) { return !counts(copy.state, lineage); });
    if (copies.empty()) return false;
    std::stable_sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) {
      return std::pair(a.state.generation(), a.state.serving()) >
             std::pair(b.state.generation(), b.state.serving());
    });
    const ShardState& first = copies[0].state;
    Place place;
    place.ps = copies[0].ps;
    if (copies.size() > 1 && first.serving() && !first.standby_lost() && first.coupling() != 0 &&
        !copies[1].state.serving() && copies[1].state.coupling() == first.coupling()) {
      place.standby = copies[1].ps;
      place.standby_incarnation = incarnations_[static_cast<size_t>(place.standby)];
      place.coupling = first.coupling();
    }
    if (!first.serving())
      moved += (moved.empty() ? "" : ", ") + ("ps " + std::to_string(place.ps)) +
               " goes on with its copy of shard " + std::to_string(shard);
    if (shard == 0) base = first.base();
    places.push_back(place);
  }
  places_ = std::move(places);
  request_.set_content(OpenRequest::KEEP);
  request_.set_lineage(lineage);
  *request_.mutable_position() = base;
  explain("every shard holds its part of what generation " + std::to_string(lineage) + " began" +
          (moved.empty() ? "" : "; " + moved));
  prepare();
  return true;
}

void PsFormation::chosen(const std::optional<Checkpoint>& newest) {
  request_.set_content(newest ? OpenRequest::RESTORE : OpenRequest::INITIALIZE);
  if (newest) {
    request_.set_checkpoint(newest->folder);
    *request_.mutable_position() = newest->position;
  }
  for (int shard = 0; shard < shards_; ++shard) {
    places_[static_cast<size_t>(shard)] = {};
    places_[static_cast<size_t>(shard)].ps = shard;
  }
  prepare();
  proceed(Next::open);
}

// Makes the openings for the places, and names standbys for the shards without one.
void PsFormation::prepare() {
  openings_.clear();
  for (int shard = 0; shard < shards_; ++shard) {
    const Place& place = places_[static_cast<size_t>(shard)];
    OpenRequest request = request_;
    request.set_shard(static_cast<uint32_t>(shard));
    request.set_coupling(place.coupling);
    openings_.push_back({place.ps, request});
    if (place.coupling == 0) continue;
    request.set_follow(true);
    openings_.push_back({place.standby, request});
  }
  name_standbys();
}

bool PsFormation::name_standbys() {
  if (copies_ == 1) return false;
  bool named = false;
  for (int shard = 0; shard < shards_; ++shard) {
    Place& place = places_[static_cast<size_t>(shard)];
    if (place.standby_incarnation != 0) continue;
    place.standby = other_home(shard, place.ps);
    place.standby_incarnation = incarnations_[static_cast<size_t>(place.standby)];
    named |= place.standby_incarnation != 0;
  }
  return named;
}

// Adds each ps that was absent when the generation was opened and is present now. Returns true if
// this names a standby.
bool PsFormation::welcome(const group::PeerRegistry& registry) {
  if (copies_ == 1) return false;
  for (int ps = 0; ps < shards_; ++ps) {
    uint64_t& known = incarnations_[static_cast<size_t>(ps)];
    if (const auto* const peer = registry.ps(ps); peer && known == 0)
      known = peer->hello.incarnation();
  }
  return name_standbys();
}

std::vector<int> PsFormation::serving() const {
  std::vector<int> serving;
  for (const Place& place : places_) serving.push_back(place.ps);
  return serving;
}

void PsFormation::opened(const std::vector<OpenReply>& replies) {
  uint64_t lowest = ~uint64_t{0};
  uint64_t highest = 0;
  opened_.clear();
  for (size_t i = 0; i < replies.size(); ++i) {
    const int ps = openings_[i].ps;
    opened_.push_back({ps, incarnations_[static_cast<size_t>(ps)], replies[i].state()});
    if (openings_[i].request.follow()) continue;
    lowest = std::min(lowest, replies[i].state().step());
    highest = std::max(highest, replies[i].state().step());
  }
  step_ = lowest;
  torn_ = sync_ && highest - lowest > 1;
  const ShardState& first = replies[0].state();
  sums_ = sync_ && first.step() > lowest ? first.sums_before() : first.sums();
  proceed(torn_ ? Next::claim : Next::announce);
}

void PsFormation::announce(GroupView& view) const {
  if (view.phase() == GroupView::FINISHED || view.phase() == GroupView::FAILED) return;
  view.set_generation(request_.generation());
  view.set_phase(GroupView::RUNNING);
  *view.mutable_base() = request_.position();
  view.set_step(step_);
  *view.mutable_sums() = sums_;
  view.clear_places();
  for (const Place& place : places_) {
    ShardPlace& message = *view.add_places();
    message.set_ps(static_cast<uint32_t>(place.ps));
    message.set_standby(static_cast<uint32_t>(place.standby));
    message.set_standby_incarnation(place.standby_incarnation);
  }
}

void PsFormation::announced() {
  announced_ = request_.generation();
  proceed(Next::watch);
}

}  // namespace muster::ps
