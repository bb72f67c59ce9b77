#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace muster::ps {

// The work of an asynchronous job, numbered 0..total-1 over all epochs and handed out one at a
// time. A ticket whose holder is lost is handed out again, so that each is done at least once.
class Tickets {
 public:
  Tickets() = default;
  // `next` is the first number never handed out; `outstanding` are the tickets that were handed out
  // and are not done. `per_epoch` 0: all tickets belong to one epoch.
  Tickets(uint64_t next, uint64_t total, std::vector<uint64_t> outstanding, uint64_t per_epoch = 0);

  std::optional<uint64_t> take(uint64_t holder);
  void done(uint64_t ticket);
  // Returns the tickets of a lost holder; they are handed out before new ones.
  void release(uint64_t holder);
  void release_all();
  // Records that another copy has handed out all tickets below `next`; in this copy the tickets
  // have no holder. Precondition: may_follow(). There are at most as many open tickets as members,
  // at most kMostAtOnce, and no ticket after the last one.
  static constexpr uint64_t kMostAtOnce = uint64_t{1} << 20;
  bool may_follow(uint64_t next) const;
  void follow(uint64_t next);

  bool finished() const { return next_ >= total_ && returned_.empty() && held_.empty(); }
  uint64_t next() const { return next_; }
  uint64_t epoch_of(uint64_t ticket) const { return per_epoch_ > 0 ? ticket / per_epoch_ : 0; }
  std::vector<uint64_t> outstanding() const;  // held or returned, ascending

 private:
  uint64_t open() const;  // held or returned

  uint64_t next_ = 0;
  uint64_t total_ = 0;
  uint64_t per_epoch_ = 0;
  std::set<uint64_t> returned_;
  std::map<uint64_t, uint64_t> held_;  // ticket -> holder
};

}  // namespace muster::ps
