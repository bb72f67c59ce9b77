#include "operator/local/copy/copy_sender.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/system/descriptor.h"
#include "common/system/system_words.h"
#include "operator/local/copy/copy_receiver.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;
constexpr size_t kPiece = size_t{1} << 16;

fs::path in(const fs::path& path, const CopyEntry& entry) {
  return entry.name.empty() ? path : path / entry.name;
}

std::string changed(const fs::path& path) {
  return "expected " + path.string() +
         " to stay as it is while it is copied, found that it has changed";
}

class Sender {
 public:
  Sender(CopyWire& wire, CopyProgress& progress) : wire_(wire), progress_(progress) {}

  void send(const Copy& copy) {
    now_ = copy.path;
    wire_.say("path " + copy.path.string());
    std::string list;
    for (const CopyEntry& entry : copy.entries) {
      list += to_text(entry) + '\0';
      if (list.size() < kPiece) continue;
      wire_.send(list);
      list.clear();
    }
    wire_.send(list);
    wire_.say("end");
    agree(copy);
    wire_.say("go");
    std::vector<const CopyEntry*> lacking;
    uint64_t bytes = 0;
    while (const auto index = wire_.hear_one_of("lacks")) {
      lacking.push_back(&copy.entries[parse_index(*index, copy.entries.size())]);
      bytes += lacking.back()->size;
    }
    progress_.wanted += bytes;
    for (const CopyEntry* entry : lacking) {
      now_ = in(copy.path, *entry);
      wire_.say("file " + std::to_string(entry - copy.entries.data()));
      send_file(in(copy.source, *entry), *entry);
    }
    now_ = copy.path;
    wire_.say("end");
    if (const std::string done = wire_.hear(); done != "done")
      throw BrokenWire("expected \"done\", found \"" + done + "\"");
    sent_.files += lacking.size();
    sent_.bytes += bytes;
  }

  const fs::path& now() const { return now_; }
  Sent sent() const { return sent_; }

 private:
  // Checks whether files on the host that no copy has created have the same content.
  void agree(const Copy& copy) {
    std::vector<std::pair<const CopyEntry*, std::string>> unsure;
    while (const auto words = wire_.hear_one_of("digest")) {
      const size_t space = words->find(' ');
      const size_t index = parse_index(words->substr(0, space), copy.entries.size());
      unsure.emplace_back(&copy.entries[index], words->substr(space + 1));
    }
    for (const auto& [entry, digest] : unsure) {
      if (digest_of(in(copy.source, *entry), wire_) != digest) {
        throw Unavailable(
            conflict(in(copy.path, *entry),
                     "another file of the same " + std::to_string(entry->size) + " bytes"));
      }
    }
  }

  void send_file(const fs::path& path, const CopyEntry& entry) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) throw Unavailable("cannot read " + path.string() + ": " + system_words(errno));
    std::array<char, kPiece> bytes;
    for (uint64_t left = entry.size; left > 0;) {
      const ssize_t got = ::read(file.get(), bytes.data(), std::min<uint64_t>(left, bytes.size()));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Unavailable("cannot read " + path.string() + ": " + system_words(errno));
      if (got == 0) throw Unavailable(changed(path));
      wire_.send({bytes.data(), static_cast<size_t>(got)});
      progress_.sent += static_cast<uint64_t>(got);
      left -= static_cast<uint64_t>(got);
    }
    require_unchanged(path, entry);
    wire_.say("whole");
  }

  static void require_unchanged(const fs::path& path, const CopyEntry& entry) {
    const std::optional<CopyEntry> now = look_at(path, entry.name);
    if (!now || !is_same(*now, entry)) throw Unavailable(changed(path));
  }

  CopyWire& wire_;
  CopyProgress& progress_;
  fs::path now_;  // the path being copied
  Sent sent_;
};

}  // namespace

Sent send_copies(CopyWire& wire, const fs::path& folder, const std::vector<Copy>& copies,
                 CopyProgress& progress) {
  Sender sender(wire, progress);
  wire.skip_to(kCopyGreeting);
  try {
    wire.say("folder " + folder.string());
    for (const Copy& copy : copies) sender.send(copy);
  } catch (const BrokenWire& error) {
    throw BrokenWire(error.what() + std::string(" while ") + sender.now().string() + " was copied");
  }
  return sender.sent();
}

}  // namespace muster::local
