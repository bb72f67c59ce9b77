#include "trainer/loop/claim_folder.h"

#include "trainer/group/storage_patience.h"
#include "trainer/loop/attend.h"

namespace muster::loop {

namespace {

// How many logical replicas compute a step; 0 where as many as the group has.
int replicas_of(const group::Membership& membership, int devices) {
  if (membership.elastic) return formation_of(membership, devices).replicas;
  return std::max(1, membership.members()) * devices;
}

}  // namespace

std::unique_ptr<folder::Claim> claim_folder(const group::Membership& membership,
                                            const Training& training, const std::stop_token& stop) {
  folder::Owner job;
  job.name_space = membership.name_space;
  job.job = membership.job;
  job.uid = membership.uid;
  job.exchange = membership.distributed() ? "parameterServers" : "collective";
  job.replicas = replicas_of(membership, training.spec.devices);
  job.training = training.json;
  return group::patiently(
      stop, [&] { return folder::Claim::take(membership.storage, job, membership.adopt, stop); });
}

}  // namespace muster::loop
