#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <thread>

#include "tests/unit/trainer/collective/support.h"
#include "tests/unit/trainer/extended.h"
#include "trainer/collective/shared_session.h"

namespace muster::collective {
namespace {

using testing::Reference;

constexpr int kMembers = 3;
constexpr uint64_t kMostSteps = 500;  // of a generation

// A generation whose members are processes of their own.
class Generation {
 public:
  Generation(const Reference& reference, const Reference::State& from)
      : reference_(reference), state_(SharedState::make(reference.shape(kMembers), from.step, 0)) {
    std::copy(from.buffers[0].begin(), from.buffers[0].end(), state_->parameters().begin());
    for (size_t i = 0; i < reference.slots(); ++i)
      std::copy(from.buffers[1 + i].begin(), from.buffers[1 + i].end(), state_->slot(i).begin());
    for (int member = 0; member < kMembers; ++member) members_.push_back(start(member, from.step));
  }
  ~Generation() {
    for (int member = 0; member < kMembers; ++member) lose(member);
  }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  void lose(int member) {
    pid_t& pid = members_[static_cast<size_t>(member)];
    if (pid < 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = -1;
  }
  bool completes() const { return state_->must_complete(); }

  // What a survivor goes on with; members that live may be in the middle of it.
  Reference::State settle() {
    state_->fence();
    Reference::State result = reference_.empty(state_->settled_step());
    SliceUpdate update(*state_, reference_.optimizer());
    update.extract(result.buffers[0], result.slots(),
                   reference_.arguments(result.step - 1, state_->sums()));
    return result;
  }

 private:
  pid_t start(int member, uint64_t step) {
    std::fflush(nullptr);  // else the member may say again what we said
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      train(member, step);
      _exit(0);
    }
    EXPECT_GT(pid, 0);
    return pid;
  }

  void train(int member, uint64_t step) {
    SharedSession session(SharedState::open(state_->shape(), state_->offer()), member,
                          reference_.optimizer());
    const Session::Watch watch{{}, [] { return false; }};
    for (const uint64_t end = step + kMostSteps; step < end; ++step)
      if (make_step(session, reference_, step, watch).outcome != Session::Outcome::ok) return;
  }

  const Reference& reference_;
  const std::unique_ptr<SharedState> state_;
  std::vector<pid_t> members_;
};

// One generation after the other, each of which ends because members are killed, at whatever they
// are in the middle of: the same bits as if nobody ever had been.
class KilledMembersTest : public ::testing::TestWithParam<compute::OptimizerSpec> {};

TEST_P(KilledMembersTest, TheSurvivorGoesOnFromOneWholeStep) {
  constexpr int kKills = 250;
  std::mt19937 engine(4);
  const Reference reference(GetParam(), 6 * SharedState::kTile + 200, 4);
  Reference::State undisturbed = reference.initial();
  Reference::State state = undisturbed;
  int completed = 0;
  for (int number = 0; number < kKills; ++number) {
    Generation generation(reference, state);
    std::this_thread::sleep_for(std::chrono::microseconds(engine() % 4000));
    const int first = static_cast<int>(engine() % kMembers);
    generation.lose(first);
    // All of them, or the others meet the fence.
    if (engine() % 2 == 0)
      for (int member = 0; member < kMembers; ++member) generation.lose(member);
    state = generation.settle();
    completed += generation.completes();
    while (undisturbed.step < state.step) reference.advance(undisturbed);
    ASSERT_TRUE(state == undisturbed) << "after " << number + 1 << " kills, at step " << state.step;
    ASSERT_TRUE(generation.settle() == state) << "what another survivor has";
  }
  EXPECT_GT(state.step, 0u);
  EXPECT_GT(completed, 0) << "no step was torn";
}

INSTANTIATE_TEST_SUITE_P(Optimizers, KilledMembersTest,
                         ::testing::Values(compute::OptimizerSpec{compute::Adam{}},
                                           compute::OptimizerSpec{compute::Lamb{}},
                                           extended(compute::RmsProp{})),
                         [](const auto& info) { return testing::name_of(info.param); });

}  // namespace
}  // namespace muster::collective
