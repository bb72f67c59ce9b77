#include "trainer/loop/roles/graceful_leave.h"

#include "common/program/log.h"
#include "common/threads/mutex.h"
#include "trainer/collective/member_flow.h"

namespace muster::loop {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLeaveGlance{20};
// Longest wait for a group that needs us or does not answer.
constexpr milliseconds kPatience{10000};

}  // namespace

GracefulLeave::GracefulLeave(group::RendezvousClient& client, MemberReport& report,
                             uint64_t incarnation, std::stop_token stop)
    : client_(client), report_(report) {
  thread_ = std::thread([this, stop = std::move(stop), incarnation] { run(stop, incarnation); });
}

GracefulLeave::~GracefulLeave() {
  ended_.request_stop();
  thread_.join();
}

void GracefulLeave::run(const std::stop_token& stop, uint64_t incarnation) {
  Mutex mutex;
  StoppableConditionVariable asked;
  {
    const std::stop_callback wake(stop, [&] {
      const MutexLock lock(mutex);
      asked.notify_all();
    });
    MutexLock lock(mutex);
    asked.wait(lock, ended_.get_token(), [&] { return stop.stop_requested(); });
  }
  if (ended_.stop_requested()) return;
  log::info("we leave as soon as the group can go on without us");
  report_.leave();
  client_.report_now();
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!collective::lets_go(client_.view(), incarnation) && !ended_.stop_requested() &&
         std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(kLeaveGlance);
  trained_.request_stop();
}

}  // namespace muster::loop
