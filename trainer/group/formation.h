#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "proto/muster/rendezvous.pb.h"

namespace muster::group {

// Rank 0's steps to a generation, and its decision to open the next: a state machine without files,
// network or clock. The caller does the step that next() names and then calls the function that the
// step names; after an Unavailable it calls renew().
//
// The order of the steps fences. A generation is claimed first. By that, a rank 0 that was taken
// for lost learns that it was replaced, and publishes nothing new. Then the publishing that it has
// begun is ended. Only then does anybody look at the checkpoints.
class Formation {
 public:
  // Each comment names a step, and after its last colon the function to call when it is done.
  enum class Next {
    claim,     // a generation above above(), unless superseded_by() what is claimed: claimed()
    fence,     // nothing that an earlier generation's writer has begun may be published: fenced()
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
  // Returns whether another process owns `newest`, the newest generation claimed. The caller asks
  // this before claiming, and from time to time while looking.
  bool superseded_by(uint64_t newest) const { return generation_ > 0 && newest > generation_; }
  virtual void claimed(uint64_t generation) = 0;
  virtual void chosen(const std::optional<Checkpoint>& newest) = 0;
  // Called if the next generation is wanted, or if the step under way has failed.
  void renew() { next_ = Next::claim; }
  // Returns why the present generation begins where it does; for the log.
  const std::string& reason() const { return reason_; }

 protected:
  void proceed(Next next) { next_ = next; }
  void begin(uint64_t claimed) { generation_ = claimed; }
  // Notes a generation that a replica knows.
  void meet(uint64_t generation) { above_ = std::max(above_, generation); }
  // Returns whether a replica knows a generation that is not below the claimed one.
  bool is_behind() const { return above_ >= generation_; }
  void explain(std::string reason) { reason_ = std::move(reason); }

 private:
  Next next_ = Next::claim;
  uint64_t generation_ = 0;  // the claimed one
  uint64_t above_ = 0;
  std::string reason_;
};

}  // namespace muster::group
