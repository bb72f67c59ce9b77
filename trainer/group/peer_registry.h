#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/muster/rendezvous.pb.h"

namespace muster::group {

// Who attends a group, as rank 0 knows it: a state machine without network or clock. Each peer
// comes by a connection of its own; a second process of the same role and index takes the place of
// the first, if it is the younger one: of a later attempt, or of the same attempt and first heard
// of later. A process that has lost its place in this way never takes it back: otherwise two live
// processes would replace each other for ever.
class PeerRegistry {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kHeartbeat{1000};
  static constexpr std::chrono::milliseconds kSilence = 3 * kHeartbeat;  // then a peer is lost
  // For a connection to say that it is one, and for a stream to say who it is from; for whoever may
  // not attend, or no more, to read why: else it ends.
  static constexpr std::chrono::milliseconds kGreeting{20000};
  // Bytes that a peer may say of its state. The group's view has an endpoint of each member: those
  // of as many as there may be stay below the limit of a message.
  static constexpr size_t kMostState = 64 << 10;
  static constexpr size_t kMostEndpoint = 512;
  static constexpr size_t kMostDeterminism = 512;
  static constexpr size_t kMostRemembered = 4096;  // processes

  struct Expected {
    std::string job_uid;
    std::string version;
    std::string training_fingerprint;
    std::string training;  // the block as JSON; "": then only that something differs can be said
    std::string layout_fingerprint;
    // What decides the bits that a member computes, and a ps; "": no two have to compute the same.
    std::string determinism;
    std::string determinism_of_ps;
    bool strict_determinism = false;  // whoever differs may not join
    int chiefs = 1;
    int workers = 0;
    int most_workers = 0;  // of an elastic group; else `workers`
    int shards = 1;
  };
  struct Peer {
    Hello hello;
    std::vector<ShardState> shards;  // of a ps: what it holds
    MemberState member;              // of a collective, likewise
    bool leaving = false;
    Time heard;
    Time lost;  // when the process before it ended, if it was restarted in place
  };

  explicit PeerRegistry(Expected expected) : expected_(std::move(expected)) {}

  // Why the peer may not join yet, or empty. It has to wait if another process of its attempt,
  // which was heard of before it, has its place and says that it began later. The clocks of the two
  // may differ, so that it is not certain which one is younger: the peer asks again until the place
  // is free.
  std::string must_wait(const Hello& hello) const;
  // Why the peer may not join (naming what was expected and found), or empty: it has joined.
  std::string admit(uint64_t connection, const Hello& hello, Time now);
  // Why the peer's part would have other bits if it were computed by rank 0's like, or empty.
  std::string other_bits(const Hello& hello) const;
  // False if the connection attends no more: its place was taken; or must not: it says what cannot
  // be.
  bool heard(uint64_t connection, const PeerMessage& message, Time now);
  void gone(uint64_t connection);
  // Connections that have been silent for kSilence.
  std::vector<uint64_t> overdue(Time now) const;
  // Connections whose place was taken since the last call: their streams are to be closed.
  std::vector<uint64_t> take_replaced();

  const Peer* ps(int index) const;
  // What a ps holds of a shard; null: it has not come, or said nothing of it.
  const ShardState* held(int ps, int shard) const;
  // The copy that serves; of the newest generation where two say so.
  const ShardState* serving(int shard) const;
  // Shards whose second copy, by its own word, has all that any member has heard of: it would be
  // taken in place of the one that serves.
  int replicated() const;
  const Peer* find(uint64_t connection) const;
  int shards_present() const;
  int members_present() const;
  // Those that are there, by rank.
  std::map<int, const Peer*> members() const;
  // The places that nobody has taken, as a text ("ps 1, worker 0") and as the operator names the
  // replicas ("ps-1", "worker-0").
  std::string missing() const;
  std::vector<std::string> missing_replicas() const;
  // All peers that attend.
  std::vector<const Peer*> peers() const;
  bool shard_leaving() const;

 private:
  std::string objection(const Hello& hello) const;
  bool came_before(uint64_t incarnation, uint64_t other) const;
  void remember(uint64_t incarnation);
  bool has_whole_standby(const ShardState& serving) const;
  const Peer* place(const std::string& role, int index) const;
  std::vector<std::pair<std::string, int>> places_empty() const;
  Expected expected_;
  std::map<uint64_t, Peer> peers_;
  std::vector<uint64_t> replaced_;
  std::deque<uint64_t> incarnations_;  // of all peers so far, in the order of their joining
};

}  // namespace muster::group
