#include "trainer/folder/lease.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>

#include "common/descriptor.h"
#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "common/pause.h"
#include "common/random.h"

namespace muster::folder {

namespace fs = std::filesystem;

namespace {

constexpr char kFile[] = "lease";

// Nothing where there is none.
std::optional<std::string> read(const fs::path& path) {
  if (!is_there(path)) return std::nullopt;
  try {
    return read_file(path);
  } catch (const Invalid&) {
    return std::nullopt;  // taken away meanwhile
  }
}

}  // namespace

Lease::Lease(fs::path storage, std::chrono::milliseconds renewal, std::function<void()> watch)
    : path_(std::move(storage) / kFile),
      process_(std::to_string(random_number())),
      renewal_(renewal),
      watch_(std::move(watch)) {
  write();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Lease::~Lease() {
  thread_ = {};
  try {
    const auto text = read(path_);
    std::error_code ignored;
    if (text && text->starts_with(process_ + " ")) fs::remove(path_, ignored);
  } catch (const Unavailable& error) {
    log::info(std::string("the lease of the job's folder stays: ") + error.what());
  }
}

void Lease::run(const std::stop_token& stop) {
  while (pause_for(renewal_, stop)) {
    watch_();
    write();
  }
}

// In place and of one length: so it needs no room on a full disk, and a file server shows it to
// whoever opens it next, whatever it remembers of the folder.
void Lease::write() {
  const std::string text = fmt::format("{} {:020}\n", process_, ++renewals_);
  const Descriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  const bool written = file &&
                       ::pwrite(file.get(), text.data(), text.size(), 0) == ssize_t(text.size()) &&
                       ::ftruncate(file.get(), off_t(text.size())) == 0;
  if (!written && !failed_)
    log::warning(path_.string() + ": cannot say that this job trains here: " +
                 std::system_category().message(errno));
  failed_ = !written;
}

LeaseWatch::LeaseWatch(const fs::path& storage, std::chrono::milliseconds silence)
    : path_(storage / kFile), silence_(silence) {}

Holder LeaseWatch::look() {
  const auto text = read(path_);
  if (!text) return Holder::none;
  const auto now = Clock::now();
  const bool first = since_ == Clock::time_point{};
  if (first || *text != seen_) {
    seen_ = *text;
    since_ = now;
    return first ? Holder::undecided : Holder::alive;
  }
  return now - since_ < silence_ ? Holder::undecided : Holder::none;
}

}  // namespace muster::folder
