#pragma once

#include <chrono>

#include "trainer/checkpoint/start/completion.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/group/membership.h"
#include "trainer/loop/evaluation/patient_reader.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// Checks whether the job's folder has the final checkpoint of the training, as far as checkpoints
// can be read. It looks at most every two seconds. It does not log damaged checkpoints, because
// rank 0 does.
class FinalCheckpoint {
 public:
  // `membership` must outlive this object.
  FinalCheckpoint(const group::Membership& membership, const Training& training);

  bool is_there();

 private:
  using Clock = std::chrono::steady_clock;

  const group::Membership& membership_;
  const checkpoint::Store store_;
  const checkpoint::Completion completion_;
  PatientReader reader_;
  bool found_ = false;
  Clock::time_point next_look_;
};

}  // namespace muster::loop
