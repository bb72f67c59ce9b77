#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <unordered_map>

#include "common/system/descriptor.h"
#include "operator/local/copy/copy_wire.h"

namespace muster::local {

// Records, in a file beside a copied path, the files that copies of this path have created on this
// host. Only one copy at a time may add to the ledger, also among hosts that share the storage.
class CopyLedger {
 public:
  // Reads the file, if it exists. Throws Unavailable if the file does not belong to this user,
  // because files named in it may be replaced and removed.
  explicit CopyLedger(std::filesystem::path path);

  // Waits until no other copy of the path is under way, and reads the entries that the other copy
  // has added. Creates the file.
  void lock(CopyWire& wire);
  // Adds a file that is about to be created. Precondition: the lock is held.
  void add(const CopyEntry& entry);

  // Whether a copy has created the file, and the file has not changed since.
  bool has(const CopyEntry& there) const;
  // Returns the names of all files that copies have ever created.
  std::set<std::string> names() const;

 private:
  Descriptor open(int flags) const;
  void read(const Descriptor& file);

  const std::filesystem::path path_;
  Descriptor file_;  // open once the file is locked
  std::unordered_multimap<std::string, CopyEntry> entries_;
};

}  // namespace muster::local
