#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::local {

// A path that a user wants to be copied to hosts.
struct CopyPath {
  std::string path;
  std::string where;  // the place in the user's file, for example "hosts.yaml:3: copy[0]"
};

// A file or folder to copy to a host.
struct CopyEntry {
  std::string name;  // path below the copied path; "" for the copied path itself
  bool is_folder = false;
  uint64_t size = 0;     // only for files, like the members below
  int64_t modified = 0;  // nanoseconds since 1970
  mode_t mode = 0;       // permissions
};

// One copied path, with its content.
struct Copy {
  std::filesystem::path source;    // path on this machine
  std::filesystem::path path;      // path on the hosts; absolute
  std::vector<CopyEntry> entries;  // a folder comes before its content, so `path` itself is first
};

// Lists the content of the paths; relative paths begin at the folder `below`. Links are followed,
// so that a host gets the files that they lead to. Left out are the folder `but`, folders with
// Python's compiled files, and the files that a copy creates for itself. Throws Invalid, naming the
// place where the path was given, for a path that does not exist or is neither file nor folder, and
// for links that lead in a circle.
std::vector<Copy> list_copies(const std::vector<CopyPath>& paths,
                              const std::filesystem::path& below, const std::filesystem::path& but);

// Returns the file or folder at `path`, or at the end of a link there, as an entry with this name;
// nothing if `path` does not exist. Throws Invalid if it is neither file nor folder; Unavailable if
// it cannot be read.
std::optional<CopyEntry> look_at(const std::filesystem::path& path, const std::string& name);

// Whether a file here and a file on a host count as the same: their size, time of modification and
// permission to execute are equal. A host may store times in whole seconds.
bool is_same(const CopyEntry& here, const CopyEntry& there);

// The paths of two files that a host keeps for a copied path: the ledger of the files that copies
// have created, and the file that is being received.
std::filesystem::path ledger_path(const std::filesystem::path& path);
std::filesystem::path part_path(const std::filesystem::path& path, bool is_folder);

}  // namespace muster::local
