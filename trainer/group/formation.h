#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "proto/muster/rendezvous.pb.h"

namespace muster::group {

// Rank 0's steps to open a generation, and its decision to open the next one: a state machine
// without files, network or clock. The caller does the step that next() returns, and then calls the
// function in the comment of that step; after an Unavailable it calls renew().
//
// The order of the steps shuts out earlier leaders. First a generation is claimed: from the claim,
// an earlier rank 0 that was considered lost learns that it was replaced, and publishes nothing
// new. Then the publishing that it has begun is ended. Only after that are the checkpoints read.
class Formation {
 public:
  // Each comment describes a step and, after the last colon, names the function to call when the
  // step is done.
  enum class Next {
    claim,     // claim a generation above above(), unless superseded_by() the newest claimed one:
               // claimed()
    fence,     // prevent publishing by earlier generations' writers: fenced()
    gather,    // replicas are missing, or have not settled: look() when the registry changes
    choose,    // the newest whole checkpoint: chosen()
    open,      // parameter servers: each of openings(): opened()
    announce,  // tell the group: announced()
    assemble,  // collectives: members prepare themselves: look() when the registry changes
    run,       // collectives: the generation is complete; tell the group: running()
    assign,    // parameter servers: announce again, as a ps was named as a standby: announced()
    watch,     // the generation runs: look() when the registry changes
  };
  struct Checkpoint {
    std::string folder;  // below the job's storage
    PositionMessage position;
  };

  virtual ~Formation() = default;

  Next next() const { return next_; }
  uint64_t above() const { return above_; }
  // Whether another process owns `newest`, the newest claimed generation. The caller calls this
  // before claiming, and from time to time while looking.
  bool superseded_by(uint64_t newest) const { return generation_ > 0 && newest > generation_; }
  virtual void claimed(uint64_t generation) = 0;
  virtual void chosen(const std::optional<Checkpoint>& newest) = 0;
  // Call this if the next generation is wanted, or if the current step has failed.
  void renew() { next_ = Next::claim; }
  // Returns why the current generation begins at its position; for the log.
  const std::string& reason() const { return reason_; }

 protected:
  void proceed(Next next) { next_ = next; }
  void begin(uint64_t claimed) { generation_ = claimed; }
  // Notes a generation that a replica knows.
  void meet(uint64_t generation) { above_ = std::max(above_, generation); }
  // Whether a replica knows a generation that is not below the claimed one.
  bool is_behind() const { return above_ >= generation_; }
  void explain(std::string reason) { reason_ = std::move(reason); }

 private:
  Next next_ = Next::claim;
  uint64_t generation_ = 0;  // the claimed one
  uint64_t above_ = 0;
  std::string reason_;
};

}  // namespace muster::group
