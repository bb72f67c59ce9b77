#include "tests/unit/trainer/collective/group_of_threads.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "tests/unit/trainer/group/identity_of_tests.h"
#include "trainer/collective/shared_session.h"
#include "trainer/collective/wire_session.h"

namespace muster::collective::testing {

void run_members(int members, const std::function<void(int member)>& work) {
  std::mutex mutex;
  std::condition_variable changed;
  int running = members;
  std::vector<std::jthread> threads;
  for (int member = 0; member < members; ++member)
    threads.emplace_back([&, member] {
      work(member);
      const std::lock_guard lock(mutex);
      --running;
      changed.notify_all();
    });
  std::unique_lock lock(mutex);
  if (changed.wait_for(lock, std::chrono::minutes(1), [&] { return running == 0; })) return;
  std::fprintf(stderr, "%d of %d members have not come back\n", running, members);
  std::abort();
}

Session::Watch patient() {
  return {{}, [] { return false; }};
}

std::vector<std::unique_ptr<HostSession>> shared_sessions(const Reference& reference, int members,
                                                          const Reference::State& state) {
  const SharedState::Shape shape = reference.shape(members);
  auto made = SharedState::make(shape, state.step, 0);
  std::ranges::copy(state.buffers[0], made->parameters().begin());
  for (size_t i = 0; i < reference.slots(); ++i)
    std::ranges::copy(state.buffers[1 + i], made->slot(i).begin());
  const SharedState::Offer offer = made->offer();
  std::vector<std::unique_ptr<HostSession>> sessions;
  sessions.push_back(std::make_unique<SharedSession>(std::move(made), 0, reference.optimizer()));
  for (int member = 1; member < members; ++member)
    sessions.push_back(std::make_unique<SharedSession>(SharedState::open(shape, offer), member,
                                                       reference.optimizer()));
  return sessions;
}

std::vector<std::unique_ptr<WireGroup>> wire_groups(const GroupShape& shape, size_t floats,
                                                    size_t bucket) {
  signal(SIGPIPE, SIG_IGN);
  std::vector<std::unique_ptr<WireGroup>> groups;
  std::vector<std::string> endpoints;
  for (int member = 0; member < shape.members; ++member) {
    groups.push_back(std::make_unique<WireGroup>(shape, member, floats, "127.0.0.1",
                                                 group::identity_of_tests(), group::PortRange{},
                                                 bucket));
    endpoints.push_back(groups.back()->endpoint());
  }
  run_members(shape.members, [&](int member) {
    groups[static_cast<size_t>(member)]->connect(endpoints, patient());
  });
  return groups;
}

std::vector<std::unique_ptr<HostSession>> wire_sessions(const Reference& reference, int members,
                                                        const Reference::State& state) {
  const SharedState::Shape shape = reference.shape(members);
  auto groups = wire_groups(shape, reference.floats());
  std::vector<std::unique_ptr<HostSession>> sessions;
  for (int member = 0; member < members; ++member)
    sessions.push_back(std::make_unique<WireSession>(std::move(groups[static_cast<size_t>(member)]),
                                                     shape, member, state.buffers, state.step,
                                                     reference.optimizer()));
  return sessions;
}

}  // namespace muster::collective::testing
