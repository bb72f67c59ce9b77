#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/documents/document.h"

namespace muster::folder {

// The job that trains in a folder, from owner.json in the folder: its names, and the settings that
// decide its weights.
struct Owner {
  std::string name_space;  // empty: `muster run`, or a training without a job
  std::string job;         // the job's name
  std::string uid;         // empty: a training without a job
  // "parameterServers" or "collective"; empty: not known.
  std::string exchange;
  // The number of logical replicas that compute a step; 0: not known, or it follows the size of the
  // group.
  int replicas = 0;
  Json training;  // the `training` block; null: not known

  // Returns "lab/mnist", or "mnist" without a namespace, as in spec.storage.adopt.
  std::string name() const;
  bool operator==(const Owner&) const = default;
};

// Reads the folder's owner; nothing if no job has trained in it. Earlier versions of Muster wrote
// only uid and name. Throws Unavailable if owner.json cannot be read, and Invalid, naming the file,
// if it is damaged.
std::optional<Owner> read_owner(const std::filesystem::path& storage);

// Makes `owner` the owner of the folder, which must exist and have no owner. Returns false if
// another process has set an owner meanwhile. Throws WriteError.
bool create_owner(const std::filesystem::path& storage, const Owner& owner);

// Makes `owner` the owner of the folder and replaces any earlier one. Throws WriteError.
void write_owner(const std::filesystem::path& storage, const Owner& owner);

// Whether the folder's owner is the job with this uid. Throws the errors of read_owner().
bool is_owned_by(const std::filesystem::path& storage, const std::string& uid);

// Throws Invalid (kProtocol), naming the owner, if the folder belongs to a job with another uid.
// Also throws the errors of read_owner().
void require_no_other_owner(const std::filesystem::path& storage, const std::string& uid);

}  // namespace muster::folder
