#include "trainer/group/storage_patience.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "common/program/log.h"
#include "common/program/time_ledger.h"
#include "common/threads/pause.h"

namespace muster::group {

namespace {

constexpr std::chrono::seconds kRemindOfStorage{30};

std::string seconds_text(std::chrono::steady_clock::duration time) {
  return std::to_string(std::chrono::round<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

bool StoragePatience::wait(const WriteError& error, std::stop_token stop) {
  if (error.lasting() || stop.stop_requested()) return false;
  const auto now = Clock::now();
  if (!waiting_) {
    waiting_.emplace(error.what());
    begun_ = told_ = now;
    log::warning(std::string("waiting for the storage: ") + error.what());
  } else if (now - begun_ > most_) {
    log::warning("the storage could not be written for " + seconds_text(now - begun_));
    return false;
  } else if (now - told_ > kRemindOfStorage) {
    told_ = now;
    log::warning("waiting for the storage for " + seconds_text(now - begun_) + ": " + error.what());
  }
  const Spending waiting(TimeUse::storage);
  return pause_for(backoff_.next(), stop);
}

void StoragePatience::rest() {
  if (!waiting_) return;
  waiting_.reset();
  backoff_.reset();
  log::info("the storage can be written again, after " + seconds_text(Clock::now() - begun_));
}

void require_writable(const std::filesystem::path& folder) {
  muster::create_directories(folder);
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    throw WriteError("cannot write in " + folder.string(), errno);
}

}  // namespace muster::group
