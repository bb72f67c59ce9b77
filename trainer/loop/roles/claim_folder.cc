#include "trainer/loop/roles/claim_folder.h"

#include "common/error.h"
#include "common/program/log.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/checkpoint/store/trial.h"
#include "trainer/group/storage_patience.h"
#include "trainer/loop/roles/attend.h"

namespace muster::loop {

namespace {

// Returns the number of logical replicas that compute a step; 0 if it follows the group's size.
int replicas_of(const group::Membership& membership, int devices) {
  if (membership.elastic) return formation_of(membership, devices).replicas;
  return std::max(1, membership.members()) * devices;
}

// Returns the job named by the newest checkpoint with a whole manifest; nothing if there is none.
std::optional<folder::Owner> owner_by_checkpoints(const std::filesystem::path& storage) {
  const std::filesystem::path folder = storage / "checkpoints";
  for (const checkpoint::FolderName& name : checkpoint::Store(folder, 1).list()) {
    try {
      const auto manifest = checkpoint::Store::read(folder / name.text()).manifest;
      folder::Owner owner;
      owner.uid = manifest.job_uid;
      owner.job = owner.uid.empty() ? group::Membership().job : owner.uid;
      owner.training = manifest.training;
      return owner;
    } catch (const Invalid& error) {
      log::info(error.what());
    }
  }
  return std::nullopt;
}

// Whether no job has trained in the folder, as far as it can be read.
bool is_new(const std::filesystem::path& storage) {
  std::error_code ignored;
  if (std::filesystem::exists(storage, ignored) && !std::filesystem::is_directory(storage, ignored))
    return true;  // and no job ever will
  try {
    return !folder::read_owner(storage);
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace

std::unique_ptr<folder::Claim> claim_folder(const group::Membership& membership,
                                            const Training& training, metrics::Reporter& reporter,
                                            const std::stop_token& stop) {
  folder::ClaimRequest request;
  request.storage = membership.storage;
  request.adopt = membership.adopt;
  request.job.name_space = membership.name_space;
  request.job.job = membership.job;
  request.job.uid = membership.uid;
  request.job.exchange = membership.distributed() ? "parameterServers" : "collective";
  request.job.replicas = replicas_of(membership, training.spec.devices);
  request.job.training = training.json;
  request.owner_by_contents = [&] { return owner_by_checkpoints(membership.storage); };
  request.say = [&](const std::string& text) { reporter.resumed(text); };
  // A job that has trained here continues as soon as the storage works again, whatever the error
  // is.
  if (is_new(membership.storage))
    group::patiently(stop, [&] { checkpoint::try_storage(membership.storage / "checkpoints"); });
  auto claim = group::patiently(stop, [&] { return folder::Claim::take(request, stop); });
  reporter.resumed("");
  return claim;
}

}  // namespace muster::loop
