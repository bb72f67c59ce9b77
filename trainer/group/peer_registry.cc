#include "trainer/group/peer_registry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "common/documents/json.h"
#include "common/documents/problem.h"
#include "trainer/folder/generations.h"
#include "trainer/group/address.h"
#include "trainer/group/position.h"
#include "trainer/spec/changes.h"

namespace muster::group {

namespace {

constexpr size_t kMostMoreTraining = 4096;  // bytes

std::string differs(const std::string& what, const std::string& expected,
                    const std::string& found) {
  if (expected == found) return "";
  return "expected " + what + " \"" + expected + "\", found \"" + found + "\"";
}

// Returns the fields in which the trainings differ, if both trainings are known.
std::string training_differs(const PeerRegistry::Expected& expected, const Hello& hello) {
  const std::string text =
      differs("training fingerprint", expected.training_fingerprint, hello.training_fingerprint());
  if (text.empty()) return "";
  // Parsing takes time proportional to the square of the number of fields.
  if (hello.training().size() > 2 * expected.training.size() + kMostMoreTraining) return text;
  const Json ours = parse_or_null(expected.training);
  const Json theirs = parse_or_null(hello.training());
  if (!ours.is_object() || !theirs.is_object()) return text;
  constexpr size_t kMost = 3;
  const std::vector<spec::Change> changes = spec::changes(ours, theirs);
  std::string fields;
  for (size_t i = 0; i < std::min(kMost, changes.size()); ++i) {
    fields += (i == 0 ? "" : "; ") + ("training." + changes[i].path) + ": expected " +
              describe(changes[i].before) + ", found " + describe(changes[i].after);
  }
  if (changes.size() > kMost) {
    fields += "; and " + std::to_string(changes.size() - kMost) + " fields more";
  }
  return fields.empty() ? text : fields;
}

bool is_chief(const std::string& role) {
  return role == "chief" || role == "master";
}

bool same_place(const Hello& hello, const std::string& role, int index) {
  const bool same_role = hello.role() == role || (is_chief(hello.role()) && is_chief(role));
  return same_role && static_cast<int>(hello.index()) == index;
}

std::string name_of(const Hello& hello) {
  return hello.role() + " " + std::to_string(hello.index()) + ", attempt " +
         std::to_string(hello.attempt());
}

bool can_be(const ShardState& state, int shards) {
  return state.ByteSizeLong() <= PeerRegistry::kMostState &&
         static_cast<int64_t>(state.shard()) < shards && state.step() <= kMostCounted &&
         is_possible(state.base()) && is_possible(state.sums()) && is_possible(state.sums_before());
}

bool can_be(const MemberState& state) {
  return state.endpoint().size() <= PeerRegistry::kMostEndpoint &&
         state.ByteSizeLong() <= PeerRegistry::kMostState && is_possible(state.position());
}

bool can_be(const StallMessage& stall) {
  return stall.doing().size() <= PeerRegistry::kMostOfStall;
}

bool can_be(double seconds) {
  return std::isfinite(seconds) && seconds >= 0;
}

// Only a ps holds shards, and each at most once.
bool can_be(const PeerMessage& message, const std::string& role, int shards) {
  return can_be(message.computing_seconds()) && can_be(message.input_seconds()) &&
         can_be(message.member()) && (message.shards_size() == 0 || role == "ps") &&
         message.shards_size() <= shards &&
         std::ranges::all_of(message.shards(),
                             [&](const ShardState& state) { return can_be(state, shards); }) &&
         message.stalls_size() <= PeerRegistry::kMostStalls &&
         std::ranges::all_of(message.stalls(),
                             [](const StallMessage& stall) { return can_be(stall); });
}

// Returns the newest generation that a message names.
uint64_t newest_of(const PeerMessage& message) {
  uint64_t newest = std::max(message.member().generation(), message.member().prepared());
  for (const ShardState& state : message.shards()) newest = std::max(newest, state.generation());
  return newest;
}

// Returns the size of the kept part of a hello, without its training, which is needed only for an
// objection.
size_t size_to_keep(const Hello& hello) {
  return hello.ByteSizeLong() - hello.training().size();
}

}  // namespace

std::string of_another_job(const std::string& uid) {
  return "expected this job's uid, found \"" + uid + "\"";
}

std::string PeerRegistry::objection(const Hello& hello) const {
  if (hello.job_uid() != expected_.job_uid) return of_another_job(hello.job_uid());
  if (auto text = differs("version", expected_.version, hello.version()); !text.empty())
    return text;
  if (auto text = training_differs(expected_, hello); !text.empty()) return text;
  int places = 0;
  if (is_chief(hello.role())) places = expected_.chiefs;
  if (hello.role() == "worker") places = std::max(expected_.workers, expected_.most_workers);
  if (hello.role() == "ps") places = expected_.shards;
  if (static_cast<int64_t>(hello.index()) >= places)
    return "expected one of " + std::to_string(places) + " replicas of role \"" + hello.role() +
           "\", found index " + std::to_string(hello.index());
  if (hello.role() == "ps" && !is_address(hello.address()))
    return "expected host:port as the address of a ps, found \"" + hello.address() + "\"";
  if (hello.role() != "ps" && hello.layout_fingerprint() != expected_.layout_fingerprint)
    return differs("layout fingerprint", expected_.layout_fingerprint, hello.layout_fingerprint());
  if (hello.attempt() > static_cast<uint32_t>(std::numeric_limits<int32_t>::max()))
    return "expected an attempt of at most " + std::to_string(std::numeric_limits<int32_t>::max()) +
           ", found attempt " + std::to_string(hello.attempt());
  if (size_to_keep(hello) > kMostHello)
    return "expected at most " + std::to_string(kMostHello) +
           " bytes of a hello beside its training, found " + std::to_string(size_to_keep(hello));
  const std::string text = expected_.strict_determinism ? other_bits(hello) : "";
  return text.empty() ? "" : "determinism: strict: " + text;
}

std::string PeerRegistry::other_bits(const Hello& hello) const {
  const bool is_ps = hello.role() == "ps";
  const std::string& expected = is_ps ? expected_.determinism_of_ps : expected_.determinism;
  if (expected.empty()) return "";
  return differs("what decides its results' bits to be", expected, hello.determinism());
}

std::string PeerRegistry::must_wait(const Hello& hello) const {
  const Peer* const other = place(hello.role(), static_cast<int>(hello.index()));
  if (!other || other->hello.attempt() != hello.attempt() ||
      other->hello.incarnation() == hello.incarnation() || !objection(hello).empty() ||
      std::ranges::find(incarnations_, hello.incarnation()) != incarnations_.end())
    return "";
  const uint64_t since = other->hello.started();
  if (hello.started() == 0 || since == 0 || hello.started() >= since) return "";
  return "expected the youngest process of " + name_of(hello) + ", found one that began " +
         std::to_string(since - hello.started()) +
         " ms before the one that attends, by the clocks of the two";
}

bool PeerRegistry::came_before(uint64_t incarnation, uint64_t other) const {
  const auto first = std::ranges::find(incarnations_, incarnation);
  return first != incarnations_.end() && first < std::ranges::find(incarnations_, other);
}

void PeerRegistry::remember(uint64_t incarnation) {
  if (std::ranges::find(incarnations_, incarnation) != incarnations_.end()) return;
  incarnations_.push_back(incarnation);
  if (incarnations_.size() > kMostRemembered) incarnations_.pop_front();
}

std::string PeerRegistry::admit(uint64_t connection, const Hello& hello, Time now) {
  if (auto text = objection(hello); !text.empty()) return text;
  for (auto it = peers_.begin(); it != peers_.end(); ++it) {
    const Hello& other = it->second.hello;
    if (!same_place(other, hello.role(), static_cast<int>(hello.index()))) continue;
    if (hello.attempt() < other.attempt())
      return "expected attempt " + std::to_string(other.attempt()) + " or later of " +
             hello.role() + " " + std::to_string(hello.index()) + ", found attempt " +
             std::to_string(hello.attempt());
    if (hello.attempt() == other.attempt() && came_before(hello.incarnation(), other.incarnation()))
      return "expected the youngest process of " + name_of(hello) +
             ", found one that a younger process has replaced";
    replaced_.push_back(it->first);
    peers_.erase(it);
    break;
  }
  const Time lost = now - std::chrono::milliseconds(hello.outage_milliseconds());
  Peer& peer = peers_[connection] = {hello, {}, {}, false, now, lost};
  peer.hello.clear_training();  // needed only for an objection
  remember(hello.incarnation());
  return "";
}

void PeerRegistry::opened(uint64_t generation) {
  newest_ = std::max(newest_, generation);
}

// The next generation must be above the generations that peers name; after a much too high number
// no generation could follow.
bool PeerRegistry::heard(uint64_t connection, const PeerMessage& message, Time now) {
  const auto found = peers_.find(connection);
  if (found == peers_.end() || newest_of(message) > newest_ + kMostAhead ||
      !can_be(message, found->second.hello.role(), expected_.shards))
    return false;
  found->second.heard = now;
  if (message.shards_size() > 0)
    found->second.shards.assign(message.shards().begin(), message.shards().end());
  if (message.has_member()) found->second.member = message.member();
  found->second.stalls.assign(message.stalls().begin(), message.stalls().end());
  found->second.computing_seconds = message.computing_seconds();
  found->second.input_seconds = message.input_seconds();
  found->second.leaving = message.leaving();
  return true;
}

void PeerRegistry::gone(uint64_t connection) {
  peers_.erase(connection);
}

std::vector<uint64_t> PeerRegistry::overdue(Time now) const {
  std::vector<uint64_t> connections;
  for (const auto& [connection, peer] : peers_)
    if (now - peer.heard > kSilence) connections.push_back(connection);
  return connections;
}

std::vector<uint64_t> PeerRegistry::take_replaced() {
  return std::exchange(replaced_, {});
}

const PeerRegistry::Peer* PeerRegistry::place(const std::string& role, int index) const {
  for (const auto& [connection, peer] : peers_)
    if (same_place(peer.hello, role, index)) return &peer;
  return nullptr;
}

const PeerRegistry::Peer* PeerRegistry::ps(int index) const {
  return place("ps", index);
}

const ShardState* PeerRegistry::held(int index, int shard) const {
  const Peer* const peer = ps(index);
  if (!peer) return nullptr;
  for (const ShardState& state : peer->shards)
    if (static_cast<int>(state.shard()) == shard) return &state;
  return nullptr;
}

const ShardState* PeerRegistry::serving(int shard) const {
  const ShardState* newest = nullptr;
  for (int index = 0; index < expected_.shards; ++index) {
    const ShardState* const state = held(index, shard);
    if (!state || !state->serving()) continue;
    if (!newest || state->generation() > newest->generation()) newest = state;
  }
  return newest;
}

// A coupling ends with the first generation that opens without one of the two copies. So if reports
// of different generations name the same coupling, the two copies are still together.
bool PeerRegistry::has_whole_standby(const ShardState& serving) const {
  if (serving.coupling() == 0) return false;
  for (int index = 0; index < expected_.shards; ++index) {
    const ShardState* const other = held(index, static_cast<int>(serving.shard()));
    if (other && !other->serving() && other->whole() && other->coupling() == serving.coupling())
      return true;
  }
  return false;
}

int PeerRegistry::replicated() const {
  int count = 0;
  for (int shard = 0; shard < expected_.shards; ++shard) {
    const ShardState* const state = serving(shard);
    count += state && has_whole_standby(*state);
  }
  return count;
}

const PeerRegistry::Peer* PeerRegistry::find(uint64_t connection) const {
  const auto found = peers_.find(connection);
  return found == peers_.end() ? nullptr : &found->second;
}

int PeerRegistry::shards_present() const {
  int count = 0;
  for (const auto& [connection, peer] : peers_) count += peer.hello.role() == "ps";
  return count;
}

int PeerRegistry::members_present() const {
  return static_cast<int>(peers_.size()) - shards_present();
}

std::map<int, const PeerRegistry::Peer*> PeerRegistry::members() const {
  std::map<int, const Peer*> members;
  for (const auto& [connection, peer] : peers_) {
    if (peer.hello.role() == "ps") continue;
    const int index = static_cast<int>(peer.hello.index());
    members[is_chief(peer.hello.role()) ? 0 : expected_.chiefs + index] = &peer;
  }
  return members;
}

std::vector<std::pair<std::string, int>> PeerRegistry::places_empty() const {
  std::set<std::pair<std::string, int>> taken;
  for (const auto& [connection, peer] : peers_) {
    const std::string& role = peer.hello.role();
    taken.emplace(is_chief(role) ? "chief" : role, static_cast<int>(peer.hello.index()));
  }
  std::vector<std::pair<std::string, int>> empty;
  const auto add = [&](const std::string& role, int places) {
    for (int i = 0; i < places; ++i)
      if (!taken.contains({role, i})) empty.emplace_back(role, i);
  };
  add("ps", expected_.shards);
  add("chief", expected_.chiefs);
  add("worker", expected_.workers);
  return empty;
}

std::string PeerRegistry::missing() const {
  std::string text;
  for (const auto& [role, index] : places_empty())
    text += (text.empty() ? "" : ", ") + role + " " + std::to_string(index);
  return text;
}

std::vector<std::string> PeerRegistry::missing_replicas() const {
  std::vector<std::string> names;
  for (const auto& [role, index] : places_empty())
    names.push_back(role + "-" + std::to_string(index));
  return names;
}

std::vector<const PeerRegistry::Peer*> PeerRegistry::peers() const {
  std::vector<const Peer*> peers;
  for (const auto& [connection, peer] : peers_) peers.push_back(&peer);
  return peers;
}

bool PeerRegistry::shard_leaving() const {
  for (const auto& [connection, peer] : peers_)
    if (peer.leaving && peer.hello.role() == "ps") return true;
  return false;
}

}  // namespace muster::group
