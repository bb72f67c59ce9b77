#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/document.h"

namespace muster::folder {

// The job that trains in a folder, as owner.json in the folder says: who it is, and what decides
// the weights that it comes to.
struct Owner {
  std::string name_space;  // empty: `muster run`, or a training by itself
  std::string job;         // its name
  std::string uid;         // empty: a training by itself
  // "parameterServers" or "collective"; empty: not known.
  std::string exchange;
  // How many logical replicas compute a step; 0: not known, or as many as the group has.
  int replicas = 0;
  Json training;  // the `training` block; null: not known

  // "lab/mnist", or "mnist" without a namespace: as spec.storage.adopt names it.
  std::string name() const;
  bool operator==(const Owner&) const = default;
};

// Reads whose the folder is; nothing where no job has trained in it. An earlier version of Muster
// has written only uid and name. Throws Unavailable where it cannot be read,
// and Invalid, naming the file, where it is damaged.
std::optional<Owner> read_owner(const std::filesystem::path& storage);

// Makes `owner` the owner of the folder, which must be there and have none. False where another
// process has made somebody its owner meanwhile. Throws WriteError.
bool create_owner(const std::filesystem::path& storage, const Owner& owner);

// Makes `owner` the owner of the folder, whoever it was before. Throws WriteError.
void write_owner(const std::filesystem::path& storage, const Owner& owner);

// False where the folder has no owner, or another than the job with this uid. Throws as read_owner
// does.
bool is_owned_by(const std::filesystem::path& storage, const std::string& uid);

// Throws Invalid (kProtocol), naming it, where the folder has another owner than the job with this
// uid; else as read_owner does.
void require_no_other_owner(const std::filesystem::path& storage, const std::string& uid);

}  // namespace muster::folder
