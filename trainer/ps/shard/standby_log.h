#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/ps/shard/versions.h"

namespace muster::ps {

// The updates of a shard that its second copy, its standby, has not acknowledged, in order. Off:
// there is no standby. Behind: the standby is on its way to be one, and the shard goes on
// meanwhile, though no more than kMostBehind updates. Together: nobody hears of an update before
// the standby has it.
class StandbyLog {
 public:
  static constexpr uint64_t kMostBehind = 16;  // so much memory: as many times the shard's floats

  struct Update {
    ForwardUpdate header;
    Lendable gradients;  // summed
  };

  enum class Mode { off, behind, together };
  Mode mode() const { return mode_; }
  // The standby is given what there is at `step`: what follows is kept for it.
  void start(uint64_t step);
  void join() { mode_ = Mode::together; }
  void stop();

  // The next one, to be filled in, with room for so many floats; of the step after the last one's.
  Update& add(size_t floats);
  // It is filled in: `on_added` is called, if anybody listens, before it is applied here.
  void added() const {
    if (on_added_) on_added_();
  }
  void on_added(std::function<void()> on_added) { on_added_ = std::move(on_added); }
  // Null: not made yet, or acknowledged.
  const Update* find(uint64_t step) const;
  void acknowledge(uint64_t step);  // all before `step`
  uint64_t acknowledged() const { return acknowledged_; }
  // What has led to `step` may be told to anybody.
  bool settles(uint64_t step) const;

 private:
  Mode mode_ = Mode::off;
  std::function<void()> on_added_;
  uint64_t acknowledged_ = 0;
  std::deque<Update> updates_;  // the first is of the step `acknowledged_`
  std::vector<Update> spare_;   // to be filled in again, once nobody reads them
};

}  // namespace muster::ps
