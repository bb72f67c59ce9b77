#include "trainer/loop/guard.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"

namespace muster::loop {

int run_guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Invalid& error) {
    log::error(error.what());
    return error.exit_code();
  } catch (const WriteError& error) {
    log::error(error.what());
    return kCannotWrite;
  } catch (const Unavailable& error) {
    log::error(error.what());
    return kUnavailable;
  } catch (const std::filesystem::filesystem_error& error) {
    log::error(error.what());
    return kUnavailable;
  } catch (const std::bad_alloc&) {
    log::error("out of memory");
    return kUnavailable;
  } catch (const std::exception& error) {
    log::error(std::string("a bug of ours: ") + error.what());
    return kInternal;
  }
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
