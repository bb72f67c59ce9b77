#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <unordered_map>

#include "common/system/descriptor.h"
#include "operator/local/copy/copy_wire.h"

namespace muster::local {

// Keeps, in a file beside a copied path, which files copies of that path have put on this host. One
// copy at a time may add to it, also of several hosts that share the storage.
class CopyLedger {
 public:
  // Reads the file, if there is one. Throws Unavailable for one that is not this user's own: the
  // names in it are those of files that may be replaced and removed.
  explicit CopyLedger(std::filesystem::path path);

  // Waits until no other copy of the path goes on, and reads what that has added. Makes the file.
  void lock(CopyWire& wire);
  // Adds a file that is about to be put there. Precondition: the lock is held.
  void add(const CopyEntry& entry);

  // Whether a copy has put the file there, and it is as that left it.
  bool has(const CopyEntry& there) const;
  // The names of all files that were put there at some time.
  std::set<std::string> names() const;

 private:
  Descriptor open(int flags) const;
  void read(const Descriptor& file);

  const std::filesystem::path path_;
  Descriptor file_;  // once it is locked
  std::unordered_multimap<std::string, CopyEntry> entries_;
};

}  // namespace muster::local
