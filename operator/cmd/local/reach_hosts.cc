#include "operator/cmd/local/reach_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/random.h"
#include "common/system/file.h"
#include "common/system/process.h"
#include "operator/cmd/show/display.h"
#include "operator/local/hosts/copying.h"
#include "operator/local/hosts/programs.h"
#include "operator/local/hosts/survey.h"

namespace muster::cmd {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kShort = std::chrono::seconds(2);  // progress is shown after this time

// A new file that only this user can read. It exists as long as this object.
class Sign {
 public:
  explicit Sign(const std::filesystem::path& folder)
      : path_(folder / "shared-by-hosts"), content_(random_digits()) {
    write_file_atomically(path_, content_);
    std::filesystem::permissions(path_, std::filesystem::perms::owner_read);
  }
  ~Sign() {
    std::error_code none;
    std::filesystem::remove(path_, none);
  }
  Sign(const Sign&) = delete;
  Sign& operator=(const Sign&) = delete;

  std::string name() const { return path_.filename(); }
  const std::string& content() const { return content_; }

 private:
  const std::filesystem::path path_;
  const std::string content_;
};

std::string with_notes(std::string text, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) text += "\n" + note;
  return text;
}

local::Survey survey(const local::HostsFile& file, const JobSource& source, bool has_folder) {
  const local::Setting& setting = source.setting;
  const Sign sign(setting.directory.root());
  local::SurveyRequest request{.folder = setting.directory.root().string(),
                               .file = sign.name(),
                               .content = sign.content(),
                               .address = "",
                               .folders = {},
                               .trainer = !source.job.training.is_null()};
  if (has_folder) request.folders = {setting.working_directory.string()};
  return local::survey(file, request);
}

std::vector<local::KnownHost> usable_hosts(local::HostsFile& file,
                                           const std::vector<local::Copy>& copies,
                                           const JobSource& source, std::vector<std::string>& notes,
                                           FILE* out) {
  const auto add = [&](std::vector<std::string> more) {
    std::ranges::move(more, std::back_inserter(notes));
  };
  Display display(out);
  const auto begun = Clock::now();
  const auto show = [&](const std::string& line) {
    if (Clock::now() - begun > kShort) display.update([&](size_t) { return line; });
  };
  if (file.copy_muster) {
    const Json& train = member(member(source.job.training, "data"), "train");
    add(local::send_programs(
        local::find_programs(own_program(), require_trainer(), given(train, "table")), file,
        [&] { show("copying muster to the hosts"); }));
  }
  const std::string folder = source.setting.working_directory.string();
  local::Survey found = survey(file, source, copies.empty());
  add(std::move(found.notes));
  if (!copies.empty()) {
    add(local::copy_to_hosts(file, folder, copies, found.usable, [&](const auto& progress) {
      const size_t hosts = found.usable.size();
      show(progress.wanted == 0
               ? fmt::format("comparing files with those of {} hosts", hosts)
               : fmt::format("copying to {} hosts: {} of {}", hosts,
                             local::size_text(progress.sent), local::size_text(progress.wanted)));
    }));
  }
  return std::move(found.usable);
}

}  // namespace

void reach_hosts(local::HostsFile file, const std::vector<local::Copy>& copies, JobSource& source,
                 local::JobState& state, std::vector<std::string>& notes, FILE* out) {
  local::Setting& setting = source.setting;
  std::vector<std::string> of_hosts;
  std::vector<local::KnownHost> usable = usable_hosts(file, copies, source, of_hosts, out);
  if (usable.empty()) {
    throw Unavailable(
        with_notes("--hosts: expected a host that can be used, found none", of_hosts));
  }
  setting.hosts = std::make_shared<local::Hosts>(std::move(file), std::move(usable), own_program());
  state.addresses = {};
  try {
    setting.hosts->add(local::replicas_to_place(source.job), local::wanted_replicas(source.job),
                       state.addresses);
  } catch (const Invalid& error) {
    throw Invalid(with_notes(error.what(), of_hosts), error.exit_code());
  }
  std::ranges::move(of_hosts, std::back_inserter(notes));
  if (!state.threads) state.threads = setting.hosts->threads_of_each();
  setting.threads = state.threads;
  // Another host has its own environment, except for Muster's variables.
  std::erase_if(setting.environment, [](const std::string& variable) {
    return !variable.starts_with("MUSTER_") || variable.starts_with("MUSTER_TRAINER=");
  });
  count_devices(source);
}

}  // namespace muster::cmd
