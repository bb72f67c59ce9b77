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

// The longest text, in bytes, for logs or peers that may repeat the words of a peer.
constexpr size_t kMostTold = 2000;

// Returns the answer to a peer of another job. The text does not name this job, because a peer that
// knows the job's uid is told all other differences.
std::string of_another_job(const std::string& uid);

// The peers of a group, as rank 0 knows them: a state machine without network or clock. Each peer
// has its own connection. A second process of the same role and index replaces the first if it is
// younger: its attempt is later, or the attempt is the same and the process was first heard of
// later. A replaced process never gets its place back; otherwise two live processes would replace
// each other for ever.
class PeerRegistry {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kHeartbeat{1000};
  static constexpr std::chrono::milliseconds kSilence = 3 * kHeartbeat;  // then a peer is lost
  // The time limit for a connection's handshake and for a stream's first message. A peer that is
  // rejected or replaced has the same time to read the reason. After this time the stream is ended.
  static constexpr std::chrono::milliseconds kGreeting{20000};
  // The limits of a peer's state, in bytes. The group's view has an endpoint for each member: with
  // the largest number of members it stays below the limit of a message.
  static constexpr size_t kMostState = 64 << 10;
  static constexpr size_t kMostEndpoint = 512;
  static constexpr size_t kMostOfStall = 512;
  static constexpr int kMostStalls = 8;
  static constexpr size_t kMostHello = 4096;       // without the training
  static constexpr size_t kMostRemembered = 4096;  // number of processes
  // No real peer has a generation so far above the newest known open one.
  static constexpr uint64_t kMostAhead = 1 << 20;

  struct Expected {
    std::string job_uid;
    std::string version;
    std::string training_fingerprint;
    std::string training;  // the block as JSON; "": differences are not named
    std::string layout_fingerprint;
    // The properties that decide the bits of a member's and of a ps's results; "": bits may differ.
    std::string determinism;
    std::string determinism_of_ps;
    bool strict_determinism = false;  // a peer that differs may not join
    int chiefs = 1;
    int workers = 0;
    int most_workers = 0;  // for an elastic group; else `workers`
    int shards = 1;
  };
  struct Peer {
    Hello hello;
    std::vector<ShardState> shards;  // the state of a ps's shards
    MemberState member;              // the state of a collective's member
    bool leaving = false;
    Time heard;
    Time lost;  // if it was restarted in place: the end of the process before it
    std::vector<StallMessage> stalls = {};            // the peer's stalled work
    double computing_seconds = 0, input_seconds = 0;  // a member's, as in PeerMessage
  };

  explicit PeerRegistry(Expected expected) : expected_(std::move(expected)) {}

  // Returns why the peer may not join yet; "" if it may. The peer must wait if another process of
  // the same attempt has its place, was heard of earlier, and says that it began later. The clocks
  // of the two may differ, so it is not certain which one is younger; the peer asks again until the
  // place is free.
  std::string must_wait(const Hello& hello) const;
  // Returns why the peer may not join (what was expected and found); "" if it has joined.
  std::string admit(uint64_t connection, const Hello& hello, Time now);
  // Returns why the bits of the peer's results may differ from the expected ones; "" if they do
  // not.
  std::string other_bits(const Hello& hello) const;
  // Notes that this generation is open: rank 0 has seen it on the storage.
  void opened(uint64_t generation);
  // Returns false if the connection must end: another process has taken its place, or the message
  // is impossible.
  bool heard(uint64_t connection, const PeerMessage& message, Time now);
  void gone(uint64_t connection);
  // Returns the connections that have been silent for kSilence.
  std::vector<uint64_t> overdue(Time now) const;
  // Returns the connections that were replaced since the last call; the caller must close their
  // streams.
  std::vector<uint64_t> take_replaced();

  const Peer* ps(int index) const;
  // Returns the state of a shard on a ps; null if the ps is not connected or has not reported the
  // shard.
  const ShardState* held(int ps, int shard) const;
  // Returns the serving copy; if two copies claim to serve, the one of the newest generation.
  const ShardState* serving(int shard) const;
  // Returns the number of shards whose second copy could replace the serving copy: it reports that
  // it has every update that a member has heard of.
  int replicated() const;
  const Peer* find(uint64_t connection) const;
  int shards_present() const;
  int members_present() const;
  // Returns the connected members, by rank.
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
  uint64_t newest_ = 0;                // newest generation known to be open
  std::deque<uint64_t> incarnations_;  // incarnations of all peers so far, in the order of joining
};

}  // namespace muster::group
