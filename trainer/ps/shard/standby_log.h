#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/ps/shard/versions.h"

namespace muster::ps {

// The updates of a shard that its second copy, its standby, has not acknowledged, in order. Mode
// off: there is no standby. Behind: the standby is catching up, and the shard meanwhile runs at
// most kMostBehind updates ahead. Together: no member hears of an update before the standby has it.
class StandbyLog {
 public:
  static constexpr uint64_t kMostBehind = 16;  // each takes as much memory as the shard

  struct Update {
    ForwardUpdate header;
    Lendable gradients;  // sum of the gradients
  };

  enum class Mode { off, behind, together };
  Mode mode() const { return mode_; }
  // Called when the standby gets the state of `step`: later updates are kept for it.
  void start(uint64_t step);
  void join() { mode_ = Mode::together; }
  void stop();

  // Adds the update of the next step, with room for `floats` floats; the caller fills it in.
  Update& add(size_t floats);
  // Called when the update is filled in and before it is applied here: calls `on_added`, if set.
  void added() const {
    if (on_added_) on_added_();
  }
  void on_added(std::function<void()> on_added) { on_added_ = std::move(on_added); }
  // Returns null if the update does not exist yet or is acknowledged.
  const Update* find(uint64_t step) const;
  void acknowledge(uint64_t step);  // all updates before `step`
  uint64_t acknowledged() const { return acknowledged_; }
  // Whether answers may show the state of `step`.
  bool settles(uint64_t step) const;

 private:
  Mode mode_ = Mode::off;
  std::function<void()> on_added_;
  uint64_t acknowledged_ = 0;
  std::deque<Update> updates_;  // the first one belongs to the step `acknowledged_`
  std::vector<Update> spare_;   // for reuse once they are not lent any more
};

}  // namespace muster::ps
