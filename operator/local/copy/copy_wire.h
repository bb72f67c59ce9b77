#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/error.h"
#include "operator/local/copy/copy_list.h"

namespace muster::local {

// The connection has ended, or was silent for too long.
class BrokenWire : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

// One end of the connection over which files are copied to a host. After the host's greeting the
// other end sends one copied path after the other. Messages are texts that end with a zero byte,
// which no file name contains:
//
//   here                            the host
//   folder <path>                 which is made
//   path <path>
//   an entry each, then "end"
//                                   digest <index> <SHA-256> for each file that no copy has put
//                                   there, of the same size, then "end"
//   go
//                                   lacks <index> for each file that it wants, then "end"
//   file <index>, its bytes, "whole"
//   end
//                                   done
//
// Either side may send "." at any time, which only means that it is still working. A host that
// cannot continue sends "problem <words>" and ends. For unchanged files only one look at each file
// is needed.
class CopyWire {
 public:
  // How long either side waits for the other. The sender waits longer, because a host may be
  // writing to a slow disk. A host waits less, because another copy must not wait long for a host
  // that receives nothing more.
  static constexpr std::chrono::seconds kPatience{300}, kPatienceOfHost{30};

  // Reads from `in` and writes to `out`, and owns neither. SIGPIPE must be ignored.
  CopyWire(int in, int out, std::chrono::seconds patience = kPatience)
      : in_(in), out_(out), patience_(patience) {}

  // The next three functions throw BrokenWire, or Unavailable with the host's words if the host has
  // a problem.
  void say(std::string text);
  void send(std::string_view bytes);
  std::string hear();
  // Hears a text that begins with `word` and a space, and returns the rest of it; returns nothing
  // for "end".
  std::optional<std::string> hear_one_of(const std::string& word);
  // Passes `size` bytes on, in pieces.
  void receive(uint64_t size, const std::function<void(std::string_view)>& take);
  // Skips everything up to the end of `greeting`.
  void skip_to(std::string_view greeting);

  // Returns whether anything has arrived.
  bool has_heard() const { return has_heard_; }

  // Call this from time to time during long work.
  void still_works();

 private:
  void fill();
  void await(int descriptor, short events) const;

  const int in_, out_;
  const std::chrono::milliseconds patience_;
  std::string unread_;
  size_t begin_ = 0;  // where the unread part begins
  bool has_heard_ = false;
  std::chrono::steady_clock::time_point said_;
};

std::string to_text(const CopyEntry& entry);
// Throws Invalid.
CopyEntry parse_entry(const std::string& text);

// Throws Invalid if the text is not a number below `end`.
size_t parse_index(const std::string& text, size_t end);

// Returns the SHA-256 of a file. Throws Unavailable.
std::string digest_of(const std::filesystem::path& path, CopyWire& wire);

// Returns why a file on a host is left unchanged.
std::string conflict(const std::filesystem::path& path, const std::string& found);

}  // namespace muster::local
