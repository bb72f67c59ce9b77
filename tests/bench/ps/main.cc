// GB/s of parameters pushed and pulled, 50 MB each way, between one member and one ps that are
// processes of their own: `bench_ps shm|grpc`, or what bounds it: `bench_ps memcpy|tcp`.

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>

#include "common/error.h"
#include "common/threads/cpu_budget.h"
#include "common/threads/heap.h"
#include "tests/bench/ps/limits.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/catalogue.h"
#include "trainer/group/grpc_server.h"
#include "trainer/group/pollers.h"
#include "trainer/ps/group/control.h"
#include "trainer/ps/member/shm_link.h"
#include "trainer/ps/serving/server.h"

namespace muster::bench {
namespace {

constexpr int64_t kInputs = 48000;  // times 256 units: 49.4 MB of parameters

spec::TrainingSpec training() {
  spec::TrainingSpec spec;
  spec.model = *compute::find_model("mnist-mlp");
  spec.optimizer = compute::Sgd{};
  spec.policy = spec::SyncPolicy::sync;
  return spec;
}

compute::ParameterLayout layout() {
  compute::ModelSpec model = training().model;
  model.input_shape = {kInputs};
  model.label_count = 10;
  return compute::make_layout(model);
}

OpenRequest opening(const compute::ParameterLayout& layout) {
  OpenRequest request;
  request.set_job_uid("uid");
  request.set_version("1");
  request.set_training_fingerprint("training");
  request.set_layout_fingerprint(layout.fingerprint());
  request.set_generation(1);
  request.set_content(OpenRequest::INITIALIZE);
  request.add_input_shape(kInputs);
  request.set_label_count(10);
  request.set_members(1);
  request.set_tickets_per_epoch(1 << 30);
  request.set_total_tickets(1 << 30);
  return request;
}

[[noreturn]] void serve(const std::string& address, const group::Identity& identity) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const group::Pollers pollers(cpu_budget() / 2);
  ps::ShardHost host(training(), ps::HostIdentity{"uid", "1", "training", "/", 0, 1});
  ps::Server server(address, identity, {&host});
  for (;;) ::pause();
}

void open_shard(const std::string& address, const group::Identity& identity,
                const compute::ParameterLayout& layout) {
  ps::Control control({address}, identity, "uid");
  for (int tries = 0;; ++tries) {
    try {
      control.open({{0, opening(layout)}}, std::chrono::seconds(10));
      return;
    } catch (const Unavailable&) {
      if (tries == 100) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

// Seconds of a round trip.
double exchange_seconds(const std::string& address, const group::Identity& identity,
                        const compute::ParameterLayout& layout, bool shared) {
  const group::Pollers pollers(cpu_budget() / 2);
  open_shard(address, identity, layout);
  std::unique_ptr<ps::MemberMemory> memory;
  if (shared) memory = std::make_unique<ps::MemberMemory>(ps::SegmentShape{layout.size(), 1}, 0);
  ps::Exchange exchange(
      layout.partition(1), 0, spec::SyncPolicy::sync,
      [&](const ps::LinkEnd& end) -> std::unique_ptr<ps::ShardLink> {
        ps::LinkHello hello{"uid", "1", layout.fingerprint(), {}, {}, 0, !identity};
        if (end.memory) hello.shared_memory = end.memory->offer();
        auto stream = ps::make_grpc_link(group::make_channel(address, identity), hello, end.bell);
        if (!end.memory) return stream;
        return ps::make_shm_link(std::move(stream), end, "ps");
      },
      memory.get());
  std::vector<float> gradients(layout.size(), 1e-6f), parameters(layout.size());
  const ps::Exchange::Watch watch{{}, [] { return false; }};
  compute::LossSums sums;
  sums.rows = 1;
  sums.weight = 1;
  exchange.connect(1);
  ps::Exchange::Result result = exchange.align(parameters, watch);
  return median_seconds([&] {
    result = exchange.step(result.step, 0, sums, gradients, parameters, watch);
    if (result.outcome != ps::Exchange::Outcome::ok) throw std::runtime_error("the exchange broke");
  });
}

double seconds_of(const std::string& what, const compute::ParameterLayout& layout) {
  const size_t bytes = layout.size() * sizeof(float);
  if (what == "memcpy") return memcpy_seconds(bytes);
  if (what == "tcp") return tcp_seconds(bytes);
  if (what != "shm" && what != "grpc" && what != "grpc-tls")
    throw std::runtime_error("expected shm, grpc, grpc-tls, memcpy or tcp, found " + what);
  const group::Identity identity = what == "grpc-tls" ? group::new_identity() : group::Identity();
  const std::string address = free_address();
  const pid_t server = ::fork();  // before gRPC has threads
  if (server == 0) serve(address, identity);
  const double seconds = exchange_seconds(address, identity, layout, what == "shm");
  ::kill(server, SIGKILL);
  return seconds;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::keep_freed_memory();  // as the trainer does
  try {
    const auto layout = muster::bench::layout();
    const double seconds = muster::bench::seconds_of(argc > 1 ? argv[1] : "", layout);
    const double gigabytes = 2e-9 * static_cast<double>(layout.size() * sizeof(float));
    fmt::print("{{\"gigabytesPerSecond\": {}, \"seconds\": {}}}\n", gigabytes / seconds, seconds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_ps: {}\n", error.what());
    return 1;
  }
}
