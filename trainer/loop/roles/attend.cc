#include "trainer/loop/roles/attend.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "common/random.h"
#include "trainer/compute/cpu/check/checked_kernels.h"
#include "trainer/compute/engine_group.h"
#include "trainer/group/address.h"
#include "trainer/group/grpc_server.h"
#include "trainer/host/instruction_set.h"
#include "trainer/ps/member/grpc_link.h"
#include "trainer/ps/member/shm_link.h"

namespace muster::loop {

namespace {

const std::chrono::system_clock::time_point kBeganAt = std::chrono::system_clock::now();
constexpr size_t kLongestTraining = 1 << 20;  // bytes, because the size of a message is limited

// The start of this process, which is also the end of the process before it: the supervisor starts
// a process as soon as the last one has ended.
const auto kBegan = std::chrono::steady_clock::now();

uint32_t milliseconds_since_start() {
  using std::chrono::milliseconds;
  const auto since =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - kBegan);
  return static_cast<uint32_t>(std::clamp<int64_t>(since.count(), 0, INT32_MAX));
}

// A ps updates float by float, so its number of threads does not matter.
std::string determinism_of_ps() {
  return "muster " + group::version() + "; " + compute::cpu::kernels().name;
}

// Whether the bits of a training depend only on the computation, and not on the order of messages.
bool has_its_bits(const spec::TrainingSpec& spec) {
  return spec.policy == spec::SyncPolicy::sync && spec.backup_workers == 0;
}

// Writes to `hello` the names by which others identify this process's GPUs, or why the GPUs cannot
// be linked.
void name_gpus(const Assembly& assembly, Hello& hello) {
  if (assembly.engine->gpu_or_null() == nullptr) return;
  std::string why = assembly.spec().why_unlinked();
  if (why.empty())
    for (const std::string& name : compute::EngineGroup::link_names(assembly.engines(), why))
      hello.add_gpus(name);
  hello.set_why_unlinked(why);
}

}  // namespace

Hello make_hello(const group::Membership& membership, const Training& training) {
  Hello hello;
  hello.set_job_uid(membership.uid);
  hello.set_version(group::version());
  hello.set_training_fingerprint(training.fingerprint);
  std::string text = training.json.dump();
  if (text.size() <= kLongestTraining) hello.set_training(std::move(text));
  hello.set_role(membership.role_name);
  hello.set_index(static_cast<uint32_t>(membership.index));
  hello.set_attempt(static_cast<uint32_t>(membership.attempt));
  hello.set_incarnation(random_number());
  hello.set_restarts(static_cast<uint32_t>(std::max(0, membership.restarts)));
  hello.set_last_exit_code(static_cast<uint32_t>(std::max(0, membership.last_exit_code)));
  hello.set_outage_milliseconds(milliseconds_since_start());
  hello.set_started(static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(kBeganAt.time_since_epoch()).count()));
  if (membership.role == group::Role::ps) hello.set_address(membership.reachable_address());
  if (membership.collective()) hello.set_host(group::shared_memory_host());
  hello.set_determinism(determinism_of_ps());
  hello.set_fuses(host::fuses());
  return hello;
}

Hello make_hello(const group::Membership& membership, const Assembly& assembly) {
  Hello hello = make_hello(membership, assembly.training);
  hello.set_layout_fingerprint(assembly.layout_fingerprint());
  hello.set_determinism(assembly.determinism_fingerprint());
  if (membership.collective()) name_gpus(assembly, hello);
  return hello;
}

group::PeerRegistry::Expected expected_peers(const group::Membership& membership,
                                             const Assembly& assembly) {
  group::PeerRegistry::Expected expected;
  expected.job_uid = membership.uid;
  expected.version = group::version();
  expected.training_fingerprint = assembly.training.fingerprint;
  expected.training = assembly.training.json.dump();
  expected.layout_fingerprint = assembly.layout_fingerprint();
  if (has_its_bits(assembly.spec())) {
    expected.determinism = assembly.determinism_fingerprint();
    expected.determinism_of_ps = determinism_of_ps();
  }
  expected.strict_determinism = assembly.spec().strict_determinism;
  expected.chiefs = static_cast<int>(membership.cluster.chief.size());
  expected.workers = static_cast<int>(membership.cluster.workers.size());
  expected.most_workers = membership.elastic ? membership.elastic->most : expected.workers;
  expected.shards = membership.shards();
  return expected;
}

collective::CollectiveFormation::Setup formation_of(const group::Membership& membership,
                                                    int devices) {
  collective::CollectiveFormation::Setup setup;
  setup.members = membership.members();
  setup.devices = devices;
  if (!membership.elastic) return setup;
  const group::Elastic& elastic = *membership.elastic;
  const int chiefs = static_cast<int>(membership.cluster.chief.size());
  setup.least = std::max(1, chiefs + elastic.least);
  if (elastic.global_batch) setup.replicas = (chiefs + elastic.most) * devices;
  return setup;
}

collective::CollectiveFormation::Link link_of(const group::Membership& membership,
                                              const spec::TrainingSpec& spec) {
  using Link = collective::CollectiveFormation::Link;
  const bool encrypted = static_cast<bool>(membership.identity);
  return spec.nccl == spec::Nccl::automatic && encrypted ? Link::on_one_host : Link::anywhere;
}

void keep_links_on_host(const group::Membership& membership, const spec::TrainingSpec& spec) {
  const bool alone = membership.members() < 2 && !membership.elastic;
  if (spec.device == "cpu" || (!membership.collective() && spec.devices == 1)) return;
  if (alone || link_of(membership, spec) == collective::CollectiveFormation::Link::on_one_host)
    setenv("NCCL_SOCKET_IFNAME", "lo", /*overwrite=*/0);
}

PsSynchronizer::Connect make_connect(const group::Membership& membership,
                                     const std::string& layout_fingerprint, spec::WireType wire) {
  const ps::LinkHello greeting{
      membership.uid, group::version(), layout_fingerprint, {}, wire, 0, !membership.identity};
  return [greeting, identity = membership.identity](
             const ps::LinkEnd& end, const std::string& address) -> std::unique_ptr<ps::ShardLink> {
    ps::LinkHello hello = greeting;
    hello.shard = end.shard;
    if (end.memory) hello.shared_memory = end.memory->offer();
    auto stream = ps::make_grpc_link(group::make_channel(address, identity), hello, end.bell);
    if (!end.memory) return stream;
    return ps::make_shm_link(std::move(stream), end,
                             "ps " + std::to_string(end.ps) + " (" + address + ")");
  };
}

}  // namespace muster::loop
