#include "operator/local/hosts/copying.h"

#include <fmt/format.h>

#include "operator/local/hosts/each_host.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

Sent copy_to_host(const HostsFile& file, const Host& host, const fs::path& folder,
                  const std::vector<Copy>& copies, CopyProgress& progress) {
  Sent sent;
  talk_to_host(
      remote_command(file, host, "receive"), "`muster host receive`",
      [&](Session&, CopyWire& wire) { sent = send_copies(wire, folder, copies, progress); });
  return sent;
}

}  // namespace

std::vector<std::string> copy_to_hosts(const HostsFile& file, const fs::path& folder,
                                       const std::vector<Copy>& copies,
                                       std::vector<KnownHost>& usable,
                                       const std::function<void(const CopyProgress&)>& meanwhile) {
  CopyProgress progress;
  std::vector<Sent> sent(usable.size());
  const std::vector<std::string> reasons = for_each_host(
      usable.size(), kCopiesAtOnce,
      [&](size_t i) { sent[i] = copy_to_host(file, usable[i].host, folder, copies, progress); },
      [&] { meanwhile(progress); });
  std::vector<std::string> notes;
  std::vector<KnownHost> reached;
  for (size_t i = 0; i < usable.size(); ++i) {
    const std::string& name = usable[i].host.name;
    if (!reasons[i].empty()) {
      notes.push_back(unusable(usable[i].host, reasons[i]));
      continue;
    }
    if (sent[i].files > 0)
      notes.push_back(fmt::format("copied {} {}, {}, to {}", sent[i].files,
                                  sent[i].files == 1 ? "file" : "files", size_text(sent[i].bytes),
                                  name));
    reached.push_back(std::move(usable[i]));
  }
  usable = std::move(reached);
  return notes;
}

std::string size_text(uint64_t bytes) {
  const char* const kUnits[] = {"bytes", "kB", "MB", "GB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1000 && unit < 3; ++unit) size /= 1000;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", size, kUnits[unit]);
}

}  // namespace muster::local
