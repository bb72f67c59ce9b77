#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/documents/document.h"

namespace muster::folder {

// The job that trains in a folder, as owner.json in the folder says: its names, and the settings
// that decide its weights.
struct Owner {
  std::string name_space;  // empty: `muster run`, or a training by itself
  std::string job;         // its name
  std::string uid;         // empty: a training by itself
  // "parameterServers" or "collective"; empty: not known.
  std::string exchange;
  // The number of logical replicas that compute a step; 0: not known, or as many as the group has.
  int replicas = 0;
  Json training;  // the `training` block; null: not known

  // Returns "lab/mnist", or "mnist" without a namespace, as in spec.storage.adopt.
  std::string name() const;
  bool operator==(const Owner&) const = default;
};

// Reads the folder's owner; nothing if no job has trained in it. Earlier versions of Muster have
// written only uid and name. Throws Unavailable if it cannot be read, and Invalid, naming the file,
// if it is damaged.
std::optional<Owner> read_owner(const std::filesystem::path& storage);

// Makes `owner` the owner of the folder, which must exist and have none. Returns false if another
// process has made somebody its owner meanwhile. Throws WriteError.
bool create_owner(const std::filesystem::path& storage, const Owner& owner);

// Makes `owner` the owner of the folder and replaces any earlier one. Throws WriteError.
void write_owner(const std::filesystem::path& storage, const Owner& owner);

// Returns true if the folder's owner is the job with this uid. Throws as read_owner does.
bool is_owned_by(const std::filesystem::path& storage, const std::string& uid);

// Throws Invalid (kProtocol), naming the owner, if the folder belongs to a job with another uid.
// Throws also as read_owner does.
void require_no_other_owner(const std::filesystem::path& storage, const std::string& uid);

}  // namespace muster::folder
