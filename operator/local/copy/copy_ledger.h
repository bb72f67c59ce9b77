#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/descriptor.h"
#include "operator/local/copy/copy_wire.h"

namespace muster::local {

// What copies of one path have put on this host, as a file beside that path. One copy at a time may
// add to it, also of several hosts that share the storage.
class CopyLedger {
 public:
  // Reads the file, if there is one.
  explicit CopyLedger(std::filesystem::path path);

  // Waits until no other copy of the path goes on, and reads what that has added. Makes the file.
  void lock(CopyWire& wire);
  // Adds files that are about to be put there. Precondition: the lock is held.
  void add(const std::vector<const CopyEntry*>& entries);
  // Waits until all that was written to this file system is on its disk.
  void sync() const;

  // Whether a copy has put the file there, and it is as that left it.
  bool has(const CopyEntry& there) const;
  // The names of all files that were put there at some time.
  std::set<std::string> names() const;

 private:
  void read();

  const std::filesystem::path path_;
  Descriptor file_;  // once it is locked
  std::unordered_multimap<std::string, CopyEntry> entries_;
};

}  // namespace muster::local
