#include "trainer/folder/owner.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/random.h"
#include "common/system/file.h"
#include "trainer/folder/generations.h"

namespace muster::folder {

namespace fs = std::filesystem;

namespace {

constexpr char kOwnerFile[] = "owner.json";
constexpr int kVersion = 1;

Json parse(const fs::path& path) {
  Json json = parse_or_null(read_file(path, kLongestText));
  const Json& uid = member(json, "jobUid");
  if (uid.is_string() && member(json, "job").is_string()) return json;
  throw Invalid(path.string() +
                ": damaged: expected an object with the strings job and jobUid, found " +
                (json.is_null() ? "no JSON" : "something else") +
                ". Where the folder is this job's, move the file away");
}

// Earlier versions had an owner.json in the folder of each generation.
std::optional<fs::path> file_of(const fs::path& storage) {
  if (is_there_anew(storage / kOwnerFile)) return storage / kOwnerFile;
  const uint64_t newest = newest_generation(storage);
  const fs::path older = storage / "generations" / std::to_string(newest) / kOwnerFile;
  if (newest > 0 && is_there(older)) return older;
  return std::nullopt;
}

}  // namespace

std::string Owner::name() const {
  return name_space.empty() ? job : name_space + "/" + job;
}

std::optional<Owner> read_owner(const fs::path& storage) {
  const auto path = file_of(storage);
  if (!path) return std::nullopt;
  const Json json = parse(*path);
  Owner owner;
  owner.name_space = string_or(json, "namespace", "");
  owner.job = string_or(json, "job", "");
  owner.uid = string_or(json, "jobUid", "");
  owner.exchange = string_or(json, "exchange", "");
  owner.replicas = static_cast<int>(integer_or(json, "replicas", 0));
  owner.training = member(json, "training");
  return owner;
}

namespace {

std::string text_of(const Owner& owner) {
  const Json json = {{"version", kVersion},        {"namespace", owner.name_space},
                     {"job", owner.job},           {"jobUid", owner.uid},
                     {"exchange", owner.exchange}, {"replicas", owner.replicas},
                     {"training", owner.training}};
  return json.dump(2) + "\n";
}

// Returns true for the errors of file servers that do not support hard links.
bool cannot_link(int error) {
  return error == EPERM || error == ENOTSUP || error == EOPNOTSUPP || error == ENOSYS ||
         error == EMLINK;
}

}  // namespace

bool create_owner(const fs::path& storage, const Owner& owner) {
  const fs::path mine = storage / (std::string(kOwnerFile) + "." + std::to_string(random_number()));
  write_file_atomically(mine, text_of(owner));
  const int error = ::link(mine.c_str(), (storage / kOwnerFile).c_str()) == 0 ? 0 : errno;
  std::error_code ignored;
  fs::remove(mine, ignored);
  if (error == EEXIST) return false;
  if (cannot_link(error)) {
    write_owner(storage, owner);
  } else if (error != 0) {
    throw WriteError((storage / kOwnerFile).string(), error);
  } else {
    sync_directory(storage);
  }
  return true;
}

void write_owner(const fs::path& storage, const Owner& owner) {
  write_file_atomically(storage / kOwnerFile, text_of(owner));
}

bool is_owned_by(const fs::path& storage, const std::string& uid) {
  const auto owner = read_owner(storage);
  return owner && owner->uid == uid;
}

void require_no_other_owner(const fs::path& storage, const std::string& uid) {
  const auto owner = read_owner(storage);
  if (!owner || owner->uid == uid) return;
  throw Invalid("expected " + storage.string() + " to be this job's alone, found that the job " +
                    owner->name() + " (uid " + (owner->uid.empty() ? "none" : owner->uid) +
                    ") has taken it: give each job a folder of its own",
                kProtocol);
}

}  // namespace muster::folder
