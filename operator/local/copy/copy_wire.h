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

// The connection has ended, or nothing has moved for too long.
class BrokenWire : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

// One end of the connection by which files are copied to a host. After its greeting a host is told
// of one copied path after the other. What is said are texts that end with a zero byte, which no
// name of a file has:
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
// Either side may say "." at any time, which means only that it still works. A host that cannot go
// on says "problem <words>" and ends. What has not changed costs one look at each file.
class CopyWire {
 public:
  // For so long either side waits until something moves. A host may be writing to a slow disk;
  // and once it is told nothing more, another copy is not to wait for its end.
  static constexpr std::chrono::seconds kPatience{300}, kPatienceOfHost{30};

  // Reads from one descriptor and writes to the other, of which it owns neither. SIGPIPE is to be
  // ignored.
  CopyWire(int in, int out, std::chrono::seconds patience = kPatience)
      : in_(in), out_(out), patience_(patience) {}

  // These throw BrokenWire, and Unavailable with the host's words if it has a problem.
  void say(std::string text);
  void send(std::string_view bytes);
  std::string hear();
  // Hears what begins with `word` and a space, and returns the rest; nothing for "end".
  std::optional<std::string> hear_one_of(const std::string& word);
  // Passes on so many bytes, in pieces.
  void receive(uint64_t size, const std::function<void(std::string_view)>& take);
  // Leaves out all up to the end of `greeting`.
  void skip_to(std::string_view greeting);

  // Returns whether anything has arrived.
  bool has_heard() const { return has_heard_; }

  // To be called now and then in work that takes long.
  void still_works();

 private:
  void fill();
  void await(int descriptor, short events) const;

  const int in_, out_;
  const std::chrono::milliseconds patience_;
  std::string unread_;
  size_t begin_ = 0;  // of what is unread in it
  bool has_heard_ = false;
  std::chrono::steady_clock::time_point said_;
};

std::string to_text(const CopyEntry& entry);
// Throws Invalid.
CopyEntry parse_entry(const std::string& text);

// Throws Invalid if the text is no number below `end`.
size_t parse_index(const std::string& text, size_t end);

// Returns the SHA-256 of a file. Throws Unavailable.
std::string digest_of(const std::filesystem::path& path, CopyWire& wire);

// Returns why a file on a host is left as it is.
std::string conflict(const std::filesystem::path& path, const std::string& found);

}  // namespace muster::local
