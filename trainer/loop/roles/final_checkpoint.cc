#include "trainer/loop/roles/final_checkpoint.h"

#include "trainer/folder/owner.h"

namespace muster::loop {

namespace {

constexpr std::chrono::milliseconds kLookForFinal{2000};

}  // namespace

FinalCheckpoint::FinalCheckpoint(const group::Membership& membership, const Training& training)
    : membership_(membership),
      store_(membership.storage / "checkpoints", 1),
      completion_(training.json, membership.distributed()) {}

bool FinalCheckpoint::is_there() {
  const auto now = Clock::now();
  if (found_ || now < next_look_) return found_;
  next_look_ = now + kLookForFinal;
  reader_.attempt([&] {
    if (!folder::is_owned_by(membership_.storage, membership_.uid)) return;
    const auto newest = store_.search().newest;
    found_ = newest && completion_.covers(newest->manifest);
  });
  return found_;
}

}  // namespace muster::loop
