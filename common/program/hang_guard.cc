#include "common/program/hang_guard.h"

#include <fstream>
#include <map>
#include <thread>
#include <utility>

#include "common/program/log.h"
#include "common/threads/mutex.h"

namespace muster {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{1000};

struct Newest {
  Mutex mutex;
  std::vector<Stall> stalls MUSTER_GUARDED_BY(mutex);
  std::vector<const KnownStall*> known MUSTER_GUARDED_BY(mutex);
};

// The object is never destroyed, because other threads may use it until the process has ended.
Newest& newest() {
  static Newest& newest = *new Newest;
  return newest;
}

void publish(std::vector<Stall> stalls) {
  const MutexLock lock(newest().mutex);
  newest().stalls = std::move(stalls);
}

bool is_debugged() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("TracerPid:")) return line.find_first_of("123456789") != line.npos;
  }
  return false;
}

std::string seconds(std::chrono::milliseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

struct HangGuard::Impl {
  explicit Impl(std::chrono::milliseconds least) : watch(least) {}

  void run();
  void tell(const std::vector<Stall>& stalls);

  HangWatch watch;
  std::function<void(const Stall&)> end;
  std::map<uint64_t, Stall> told;  // by the work's id
  Mutex mutex;
  ConditionVariable changed;
  bool closing MUSTER_GUARDED_BY(mutex) = false;
  std::thread thread;
};

void HangGuard::Impl::tell(const std::vector<Stall>& stalls) {
  std::map<uint64_t, Stall> present;
  for (const Stall& stall : stalls) {
    if (!told.contains(stall.work))
      log::warning(stall.doing + " has given no sign of life for " + seconds(stall.lasted));
    present.emplace(stall.work, stall);
  }
  for (const auto& [work, stall] : told) {
    if (!present.contains(work))
      log::info(stall.doing + " goes on, or is over, after more than " + seconds(stall.lasted));
  }
  told = std::move(present);
}

void HangGuard::Impl::run() {
  MutexLock lock(mutex);
  while (!closing) {
    lock.unlock();
    std::vector<Stall> stalls = watch.look(WatchedWork::all(), Clock::now());
    publish(stalls);
    for (const Stall& stall : stalls) {
      if (stall.hopeless && !is_debugged()) end(stall);
    }
    tell(stalls);
    lock.lock();
    changed.wait_for(lock, kLook, [&]() MUSTER_REQUIRES(mutex) { return closing; });
  }
}

HangGuard::HangGuard(std::chrono::milliseconds least, std::function<void(const Stall&)> end) {
  if (least.count() == 0) return;
  impl_ = std::make_unique<Impl>(least);
  impl_->end = std::move(end);
  impl_->thread = std::thread([this] { impl_->run(); });
}

HangGuard::~HangGuard() {
  if (!impl_) return;
  {
    const MutexLock lock(impl_->mutex);
    impl_->closing = true;
    impl_->changed.notify_all();
  }
  impl_->thread.join();
  publish({});
}

KnownStall::KnownStall(std::string doing) : doing_(std::move(doing)), since_(Clock::now()) {
  const MutexLock lock(newest().mutex);
  newest().known.push_back(this);
}

KnownStall::~KnownStall() {
  const MutexLock lock(newest().mutex);
  std::erase(newest().known, this);
}

std::vector<Stall> current_stalls() {
  const MutexLock lock(newest().mutex);
  std::vector<Stall> stalls = newest().stalls;
  for (const KnownStall* known : newest().known) {
    Stall& stall = stalls.emplace_back();
    stall.kind = WatchedWork::Kind::storage;
    stall.doing = known->doing_;
    stall.lasted =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - known->since_);
  }
  return stalls;
}

}  // namespace muster
