#include "trainer/loop/guard.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "common/environment.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "common/system/system_words.h"
#include "common/text/whole_number.h"
#include "trainer/compute/cpu/check/checked_kernels.h"

namespace muster::loop {

int run_guarded(const std::function<int()>& body, const Tell& tell) {
  // Each line of the message is an event of its own, so several problems are several events.
  const auto end = [&](const std::string& message, int exit_code) {
    std::istringstream lines(message);
    for (std::string line; std::getline(lines, line);) tell ? tell(line) : log::error(line);
    return exit_code;
  };
  try {
    return body();
  } catch (const Invalid& error) {
    return end(error.what(), error.exit_code());
  } catch (const WriteError& error) {
    return end(error.what(), kCannotWrite);
  } catch (const Unavailable& error) {
    return end(error.what(), kUnavailable);
  } catch (const DeviceError& error) {
    return end(error.what(), error.lost() ? kFaulty : kUnavailable);
  } catch (const std::filesystem::filesystem_error& error) {
    return end(error.what(), kUnavailable);
  } catch (const std::exception& error) {
    if (const auto limit = limit_words(error)) return end(*limit, kUnavailable);
    return end(std::string("a bug of ours: ") + error.what(), kInternal);
  }
}

void require_right_answers() {
  compute::cpu::kernels();
}

std::unique_ptr<HangGuard> guard_against_hangs() {
  constexpr int kMost = 1'000'000;
  const std::string text = environment_variable("MUSTER_HANG_SECONDS", "30");
  const auto seconds = whole_number(text, 0, kMost);
  if (!seconds)
    throw Invalid("MUSTER_HANG_SECONDS: expected a whole number from 0 to " +
                      std::to_string(kMost) + ", found \"" + text + "\"",
                  kBadConfig);
  return std::make_unique<HangGuard>(std::chrono::seconds(*seconds), [](const Stall& stall) {
    alarm(5);  // ends the process if the hanging thread holds the log's lock
    log::error(stall.doing + " hangs: this process ends, so that a new one can go on in its place");
    std::_Exit(kHung);
  });
}

namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

void wait_for_signals(std::stop_token closing, std::stop_source& source) {
  const sigset_t set = stop_signals();
  const timespec glance{0, 50'000'000};
  while (!closing.stop_requested()) {
    if (sigtimedwait(&set, nullptr, &glance) < 0) continue;
    if (source.stop_requested()) _exit(kTerminated);
    log::info("asked to stop");
    source.request_stop();
  }
}

}  // namespace

StopSignal::StopSignal() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  thread_ = std::jthread([this](std::stop_token closing) { wait_for_signals(closing, source_); });
}

StopSignal::~StopSignal() = default;

}  // namespace muster::loop
