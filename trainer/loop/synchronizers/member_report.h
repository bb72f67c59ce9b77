#pragma once

#include "common/threads/mutex.h"
#include "proto/muster/rendezvous.pb.h"
#include "trainer/collective/contribution.h"

namespace muster::loop {

// What a member reports with each heartbeat. Thread-safe.
class MemberReport {
 public:
  void set(const MemberState& state);  // a collective's member
  void leave();                        // asks an elastic group to continue without this member
  // Adds the time that the member took to compute a step.
  void add(const collective::ComputingTime& time);
  void fill(PeerMessage& message) const;

 private:
  mutable Mutex mutex_;
  MemberState state_ MUSTER_GUARDED_BY(mutex_);
  bool leaving_ MUSTER_GUARDED_BY(mutex_) = false;
  collective::ComputingTime average_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::loop
