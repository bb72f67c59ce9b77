#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "proto/muster/rendezvous.pb.h"

namespace muster::collective {

// Whether the group trains in `generation`.
bool runs(const GroupView& view, uint64_t generation);

// Whether a member that wants to leave may do so: the group continues without it, or has ended.
bool lets_go(const GroupView& view, uint64_t incarnation);

// Decides how a member of a collective follows its group from one generation to the next: what to
// do with a view, and what to report to rank 0. It has no network, files, threads or clock: the
// caller does what is decided, says what came of it, and sends report() after each change.
class MemberFlow {
 public:
  enum class Next {
    wait,     // this view asks for nothing
    prepare,  // prepare for the generation of the view's plan
    enter,    // enter this generation
    end,      // training has finished or failed
  };
  static constexpr int kMostOdd = 3;  // limit of differing comparisons in a row

  explicit MemberFlow(uint64_t incarnation) : incarnation_(incarnation) {}

  Next next(const GroupView& view) const;
  int place_in(const CollectivePlan& plan) const;  // -1: none
  // Whether the plan expects a state from us that we no longer have, because rank 0 does not know
  // yet of the steps that we made since our last report. `step` is the step of our state.
  bool is_outdated(const CollectivePlan& plan, uint64_t step) const;

  void prepared(uint64_t generation, const std::string& endpoint);
  void failed(uint64_t generation);  // we cannot be part of it
  // The memory of the plan's source could not be used, or our GPUs could not be linked. The other
  // process may just have ended. Only if this happens twice in a row (memory: with the same source)
  // is it reported as lasting.
  void memory_refused(const GroupView& view, const CollectivePlan& plan);
  void link_failed(const GroupView& view, const CollectivePlan& plan);
  void linked() { failed_links_ = 0; }
  void entered(uint64_t generation);

  // Whether we are in a generation and have not ended our part in it.
  bool is_inside() const { return generation() > 0 && !report_.settled(); }
  // Whether the step after `step`, the last one that we know of, was made: `found` is the step of
  // the session's state when our part has ended. Throws Invalid (kProtocol) if it is neither.
  bool made_step_after(uint64_t step, uint64_t found) const;
  void settled(const PositionMessage& position);

  // The members have compared their states. `odd` are the places of those whose state differs from
  // that of most members. A comparison on entry without a difference is not to be told, because all
  // members have just read the same checkpoint.
  void compared(const CollectivePlan& plan, std::span<const int> odd);
  int odd_in_a_row() const { return odd_in_a_row_; }
  // Whether our state must not be saved, because the members' states differ.
  bool is_spoiled() const { return report_.differed() >= generation(); }

  uint64_t generation() const { return report_.generation(); }  // that we entered last; 0: none
  const MemberState& report() const { return report_; }

 private:
  const uint64_t incarnation_;
  MemberState report_;
  uint64_t refused_ = 0;  // the incarnation whose memory we last failed to use
  int failed_links_ = 0;  // in a row
  int odd_in_a_row_ = 0;  // comparisons in which our state differed from that of most members
};

}  // namespace muster::collective
