#include "operator/local/copy/copy_wire.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <sstream>

#include "common/digest.h"
#include "common/system/descriptor.h"
#include "common/system/system_words.h"
#include "common/text/whole_number.h"

namespace muster::local {

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLongestText = size_t{1} << 16;
constexpr const char* kStillWorks = ".";
constexpr const char* kEnd = "end";
constexpr const char* kProblem = "problem ";
constexpr auto kSaidAgainAfter = std::chrono::seconds(5);

}  // namespace

void CopyWire::await(int descriptor, short events) const {
  pollfd watched{descriptor, events, 0};
  const int ready = ::poll(&watched, 1, static_cast<int>(patience_.count()));
  if (ready > 0 || (ready < 0 && errno == EINTR)) return;
  if (ready < 0) throw BrokenWire("poll: " + system_words(errno));
  throw BrokenWire("nothing has moved for " + std::to_string(patience_.count() / 1000) + " s");
}

void CopyWire::say(std::string text) {
  said_ = Clock::now();
  text += '\0';
  send(text);
}

void CopyWire::send(std::string_view bytes) {
  while (!bytes.empty()) {
    await(out_, POLLOUT);
    const ssize_t sent = ::write(out_, bytes.data(), std::min(bytes.size(), kLongestText));
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
      for (;;) hear();  // throws why the host accepts no more, or that the wire has ended
  }
}

void CopyWire::fill() {
  unread_.erase(0, begin_);
  begin_ = 0;
  const size_t size = unread_.size();
  await(in_, POLLIN);
  unread_.resize(size + kLongestText);
  const ssize_t got = ::read(in_, unread_.data() + size, kLongestText);
  unread_.resize(size + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  has_heard_ |= got > 0;
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
    throw BrokenWire("the connection has ended");
}

std::string CopyWire::hear() {
  while (true) {
    size_t end;
    while ((end = unread_.find('\0', begin_)) == std::string::npos) {
      if (unread_.size() - begin_ > kLongestText)
        throw BrokenWire("expected a text of the other side, found too many bytes without an end");
      fill();
    }
    std::string text = unread_.substr(begin_, end - begin_);
    begin_ = end + 1;
    if (text == kStillWorks) continue;
    if (text.starts_with(kProblem)) throw Unavailable(text.substr(std::string(kProblem).size()));
    return text;
  }
}

std::optional<std::string> CopyWire::hear_one_of(const std::string& word) {
  const std::string text = hear();
  if (text == kEnd) return std::nullopt;
  if (text.starts_with(word + " ")) return text.substr(word.size() + 1);
  throw BrokenWire("expected \"" + word + "\" or \"" + kEnd + "\", found \"" + text + "\"");
}

void CopyWire::receive(uint64_t size, const std::function<void(std::string_view)>& take) {
  while (size > 0) {
    if (begin_ == unread_.size()) fill();
    const size_t most = unread_.size() - begin_;
    const size_t piece = size < most ? static_cast<size_t>(size) : most;
    take(std::string_view(unread_).substr(begin_, piece));
    begin_ += piece;
    size -= piece;
  }
}

void CopyWire::skip_to(std::string_view greeting) {
  size_t at;
  while ((at = unread_.find(greeting)) == std::string::npos) {
    if (unread_.size() > kLongestText)
      throw BrokenWire("expected the greeting of `muster host`, found other words");
    fill();
  }
  begin_ = at + greeting.size();
}

void CopyWire::still_works() {
  if (Clock::now() - said_ > kSaidAgainAfter) say(kStillWorks);
}

std::string to_text(const CopyEntry& entry) {
  if (entry.is_folder) return "folder " + entry.name;
  char mode[8];
  const auto end = std::to_chars(mode, mode + sizeof mode, entry.mode, 8).ptr;
  return "file " + std::to_string(entry.size) + " " + std::to_string(entry.modified) + " " +
         std::string(mode, end) + " " + entry.name;
}

CopyEntry parse_entry(const std::string& text) {
  const std::string folder = "folder ";
  if (text.starts_with(folder)) return {.name = text.substr(folder.size()), .is_folder = true};
  std::istringstream words(text);
  std::string kind;
  CopyEntry entry;
  words >> kind >> entry.size >> entry.modified >> std::oct >> entry.mode;
  if (!words || kind != "file" || words.get() != ' ')
    throw Invalid("expected an entry of a copy, found \"" + text + "\"");
  entry.mode &= 0777;
  std::getline(words, entry.name, '\0');
  return entry;
}

size_t parse_index(const std::string& text, size_t end) {
  const auto index = whole_number<size_t>(text);
  if (!index || *index >= end)
    throw Invalid("expected a number below " + std::to_string(end) + ", found \"" + text + "\"");
  return *index;
}

std::string digest_of(const std::filesystem::path& path, CopyWire& wire) {
  const auto fail = [&] {
    throw Unavailable("cannot read " + path.string() + ": " + system_words(errno));
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) fail();
  Sha256 digest;
  std::array<std::byte, size_t{1} << 16> bytes;
  while (true) {
    const ssize_t got = ::read(file.get(), bytes.data(), bytes.size());
    if (got < 0 && errno != EINTR) fail();
    if (got == 0) return digest.finish();
    if (got > 0) digest.update(std::span(bytes).first(static_cast<size_t>(got)));
    wire.still_works();
  }
}

std::string conflict(const std::filesystem::path& path, const std::string& found) {
  return path.string() + ": expected the file that is here, or one that Muster has put there and " +
         "nobody has changed since, found " + found +
         ". Muster does not replace it: move it away on the host, or copy to another place";
}

}  // namespace muster::local
