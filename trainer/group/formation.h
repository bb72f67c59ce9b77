#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proto/muster/rendezvous.pb.h"

namespace muster::group {

// Rank 0's way to a generation, and what makes it open the next: a state machine without files,
// network or clock. Whoever drives it does what next() says and then calls what that says; an
// Unavailable on the way means renew().
//
// The order fences: a generation is claimed first, by which a rank 0 that was taken for lost learns
// that it was replaced, and begins to publish no more; then what it has begun is ended; only then
// does anybody look at what there is.
class Formation {
 public:
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
  // The newest generation that anybody has claimed: true if that is not us any more. To be asked
  // before claiming, and from time to time while looking.
  bool superseded_by(uint64_t newest) const { return generation_ > 0 && newest > generation_; }
  virtual void claimed(uint64_t generation) = 0;
  virtual void chosen(const std::optional<Checkpoint>& newest) = 0;
  // The next generation is wanted, or what was under way has failed.
  void renew() { next_ = Next::claim; }
  // Why the present generation begins where it does; for the log.
  const std::string& reason() const { return reason_; }

 protected:
  Next next_ = Next::claim;
  uint64_t generation_ = 0;  // ours
  uint64_t above_ = 0;
  std::string reason_;
};

}  // namespace muster::group
