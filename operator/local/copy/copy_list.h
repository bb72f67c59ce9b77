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
  std::string where;  // it was said: "hosts.yaml:3: copy[0]"
};

// A file or folder that a host is to have as it is here.
struct CopyEntry {
  std::string name;  // below the copied path; "" for that path itself
  bool is_folder = false;
  uint64_t size = 0;     // of a file, as all that follows
  int64_t modified = 0;  // in nanoseconds since 1970
  mode_t mode = 0;       // its permissions
};

// One copied path, with all that is in it.
struct Copy {
  std::filesystem::path source;    // here
  std::filesystem::path path;      // on the hosts; absolute
  std::vector<CopyEntry> entries;  // a folder comes before what is in it, so `path` itself first
};

// Lists what is at the paths, which count from the folder `below`. Links are followed, so that a
// host gets the files that they lead to. The folder `but` is left out, and so are folders with
// Python's compiled files and what a copy keeps for itself. Throws Invalid, saying where a path was
// wanted, for what is not there or is neither file nor folder, and for links that lead in a circle.
std::vector<Copy> list_copies(const std::vector<CopyPath>& paths,
                              const std::filesystem::path& below, const std::filesystem::path& but);

// Returns what is at `path`, or at the end of a link there, as an entry of that name; nothing where
// nothing is. Throws Invalid if it is neither file nor folder, Unavailable if nobody may look.
std::optional<CopyEntry> look_at(const std::filesystem::path& path, const std::string& name);

// Whether two files, here and on a host, are taken for the same: by size, time of modification and
// whether they may be executed. A host may keep times in whole seconds.
bool is_same(const CopyEntry& here, const CopyEntry& there);

// Two files that a host keeps for a copied path. The first says what earlier copies have put there;
// the second is the file that is being received.
std::filesystem::path ledger_path(const std::filesystem::path& path);
std::filesystem::path part_path(const std::filesystem::path& path, bool is_folder);

}  // namespace muster::local
