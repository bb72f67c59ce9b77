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

// The bytes, at most, of a text that is logged or told and may repeat what a peer has said.
constexpr size_t kMostTold = 2000;

// Returns what a peer of another job is told. The text does not say which job this is, because a
// peer that knows a job's uid is told in what else it differs.
std::string of_another_job(const std::string& uid);

// The peers of a group, as rank 0 knows them: a state machine without network or clock. Each peer
// comes by a connection of its own. A second process of the same role and index replaces the first
// if it is younger: if its attempt is later, or if the attempt is the same and it was first heard
// of later. A process that has been replaced in this way never takes its place back: otherwise two
// live processes would replace each other for ever.
class PeerRegistry {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kHeartbeat{1000};
  static constexpr std::chrono::milliseconds kSilence = 3 * kHeartbeat;  // then a peer is lost
  // The time that a connection has for its handshake, and a stream for its first message. A peer
  // that is rejected or replaced has as long to read why. After that the stream is ended.
  static constexpr std::chrono::milliseconds kGreeting{20000};
  // The limits of a peer's state, in bytes. The group's view has an endpoint for each member: with
  // as many members as there may be, it stays below the limit of a message.
  static constexpr size_t kMostState = 64 << 10;
  static constexpr size_t kMostEndpoint = 512;
  static constexpr size_t kMostOfStall = 512;
  static constexpr int kMostStalls = 8;
  static constexpr size_t kMostHello = 4096;       // beside the training
  static constexpr size_t kMostRemembered = 4096;  // processes
  // No peer is of a generation that is so far above the newest one that is known to be open.
  static constexpr uint64_t kMostAhead = 1 << 20;

  struct Expected {
    std::string job_uid;
    std::string version;
    std::string training_fingerprint;
    std::string training;  // the block as JSON; "": differences are not named
    std::string layout_fingerprint;
    // The properties that decide the bits that a member computes, and a ps; "": their bits may
    // differ.
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
    std::vector<ShardState> shards;  // the state of a ps's shards
    MemberState member;              // the state of a collective's member
    bool leaving = false;
    Time heard;
    Time lost;  // when the process before it ended, if it was restarted in place
    std::vector<StallMessage> stalls = {};  // what stands still in it
  };

  explicit PeerRegistry(Expected expected) : expected_(std::move(expected)) {}

  // Returns why the peer may not join yet, or empty. It has to wait if another process of its
  // attempt, which was heard of before it, has its place and says that it began later. The clocks
  // of the two may differ, so that it is not certain which one is younger: the peer asks again
  // until the place is free.
  std::string must_wait(const Hello& hello) const;
  // Returns why the peer may not join (what was expected and found), or empty: then it has joined.
  std::string admit(uint64_t connection, const Hello& hello, Time now);
  // Returns why the peer's results may differ in their bits from those of rank 0's kind, or empty.
  std::string other_bits(const Hello& hello) const;
  // Tells that this generation is open, as rank 0 has seen on the storage.
  void opened(uint64_t generation);
  // Returns false if the connection must end: another process has taken its place, or the message
  // is impossible.
  bool heard(uint64_t connection, const PeerMessage& message, Time now);
  void gone(uint64_t connection);
  // Returns the connections that have been silent for kSilence.
  std::vector<uint64_t> overdue(Time now) const;
  // Returns the connections that were replaced since the last call: their streams are to be closed.
  std::vector<uint64_t> take_replaced();

  const Peer* ps(int index) const;
  // Returns the state of a shard on a ps; null if the ps is not there or has not reported the
  // shard.
  const ShardState* held(int ps, int shard) const;
  // Returns the copy that serves; if two say so, that of the newest generation.
  const ShardState* serving(int shard) const;
  // Returns the number of shards whose second copy says that it has all that any member has heard
  // of: it could replace the copy that serves.
  int replicated() const;
  const Peer* find(uint64_t connection) const;
  int shards_present() const;
  int members_present() const;
  // Returns the members that are there, by rank.
  std::map<int, const Peer*> members() const;
  // Return the places that nobody has taken: as a text ("ps 1, worker 0"), and with the operator's
  // names of the replicas ("ps-1", "worker-0").
  std::string missing() const;
  std::vector<std::string> missing_replicas() const;
  // Returns all peers that attend.
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
  uint64_t newest_ = 0;                // generation that is known to be open
  std::deque<uint64_t> incarnations_;  // of all peers so far, in the order of their joining
};

}  // namespace muster::group
