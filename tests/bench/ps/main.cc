// GB/s of parameters pushed and pulled, 50 MB each way, between one member and one ps that are
// processes of their own: `bench_ps shm|grpc`, or what bounds it: `bench_ps memcpy|tcp`. On one GPU
// with 1 GB each way: `bench_ps gpu`, and `bench_ps gpu-copy`, two copies of as much.

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
#include "trainer/compute/cuda/gpus.h"
#include "trainer/compute/device.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/catalogue.h"
#include "trainer/group/grpc_server.h"
#include "trainer/group/pollers.h"
#include "trainer/ps/group/control.h"
#include "trainer/ps/member/shm_link.h"
#include "trainer/ps/serving/server.h"

namespace muster::bench {
namespace {

// Times 256 units: 49.4 MB of parameters, and 1.02 GB.
constexpr int64_t kInputs = 48'000;
constexpr int64_t kInputsOfGpu = 1'000'000;

spec::TrainingSpec training() {
  spec::TrainingSpec spec;
  spec.model = *compute::find_model("mnist-mlp");
  spec.optimizer = compute::Sgd{};
  spec.policy = spec::SyncPolicy::sync;
  return spec;
}

compute::ParameterLayout layout(int64_t inputs) {
  compute::ModelSpec model = training().model;
  model.input_shape = {inputs};
  model.label_count = 10;
  return compute::make_layout(model);
}

OpenRequest opening(const compute::ParameterLayout& layout, int64_t inputs) {
  OpenRequest request;
  request.set_job_uid("uid");
  request.set_version("1");
  request.set_training_fingerprint("training");
  request.set_layout_fingerprint(layout.fingerprint());
  request.set_generation(1);
  request.set_content(OpenRequest::INITIALIZE);
  request.add_input_shape(inputs);
  request.set_label_count(10);
  request.set_members(1);
  request.set_tickets_per_epoch(1 << 30);
  request.set_total_tickets(1 << 30);
  return request;
}

// Returns the first GPU. Throws Invalid if there is none.
std::unique_ptr<compute::cuda::Gpu> open_gpu() {
  return compute::cuda::open_gpu(compute::choose_devices("cuda", 1)[0].ordinal);
}

[[noreturn]] void serve(const std::string& address, const group::Identity& identity, bool on_gpu) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const group::Pollers pollers(cpu_budget() / 2);
  std::shared_ptr<compute::cuda::Gpu> gpu;
  if (on_gpu) gpu = open_gpu();
  ps::ShardHost host(training(), ps::HostIdentity{"uid", "1", "training", "/", 0, 1}, gpu);
  ps::Server server(address, identity, {&host});
  for (;;) ::pause();
}

void open_shard(const std::string& address, const group::Identity& identity,
                const compute::ParameterLayout& layout, int64_t inputs) {
  ps::Control control({address}, identity, "uid");
  for (int tries = 0;; ++tries) {
    try {
      control.open({{0, opening(layout, inputs)}}, std::chrono::seconds(60));
      return;
    } catch (const Unavailable&) {
      if (tries == 100) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

// Seconds of a round trip.
double exchange_seconds(const std::string& address, const group::Identity& identity,
                        const compute::ParameterLayout& layout, int64_t inputs, bool shared,
                        compute::cuda::Gpu* gpu) {
  const group::Pollers pollers(cpu_budget() / 2);
  open_shard(address, identity, layout, inputs);
  std::unique_ptr<ps::MemberMemory> memory;
  if (shared)
    memory = std::make_unique<ps::MemberMemory>(ps::SegmentShape{layout.size(), 1}, 0, gpu);
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
  std::vector<float> own_gradients(layout.size(), 1e-6f), own_parameters(layout.size());
  const ps::Exchange::Watch watch{{}, [] { return false; }};
  compute::LossSums sums;
  sums.rows = 1;
  sums.weight = 1;
  exchange.connect(1);
  compute::PlacedFloats gradients = own_gradients, parameters = own_parameters;
  if (gpu) {
    gradients = memory->view().gradients();
    parameters = memory->view().parameters();
    gpu->put(gradients.address(), own_gradients.data(), gradients.size_bytes()).wait();
  }
  ps::Exchange::Result result = exchange.align(parameters, watch);
  return median_seconds([&] {
    result = exchange.step(result.step, 0, sums, gradients, parameters, watch);
    if (result.outcome != ps::Exchange::Outcome::ok) throw std::runtime_error("the exchange broke");
  });
}

// Seconds of two copies on the GPU.
double gpu_copy_seconds(size_t bytes) {
  const auto gpu = open_gpu();
  const auto floats = static_cast<int64_t>(bytes / sizeof(float));
  const compute::cuda::GpuArray<float> from(*gpu, floats), to(*gpu, floats);
  return median_seconds([&] {
    for (int i = 0; i < 2; ++i) gpu->upload(to.data(), from.data(), bytes);
    gpu->wait();
  });
}

double seconds_of(const std::string& what, int64_t inputs) {
  const compute::ParameterLayout layout = bench::layout(inputs);
  const size_t bytes = layout.size() * sizeof(float);
  if (what == "memcpy") return memcpy_seconds(bytes);
  if (what == "tcp") return tcp_seconds(bytes);
  if (what == "gpu-copy") return gpu_copy_seconds(bytes);
  if (what != "shm" && what != "grpc" && what != "grpc-tls" && what != "gpu")
    throw std::runtime_error(
        "expected shm, grpc, grpc-tls, gpu, memcpy, tcp or gpu-copy, found \"" + what + "\"");
  const group::Identity identity = what == "grpc-tls" ? group::new_identity() : group::Identity();
  const std::string address = free_address();
  const pid_t server = ::fork();  // before gRPC has threads, and CUDA is used
  if (server == 0) serve(address, identity, what == "gpu");
  const auto gpu = what == "gpu" ? open_gpu() : nullptr;
  const double seconds = exchange_seconds(address, identity, layout, inputs,
                                          what == "shm" || what == "gpu", gpu.get());
  ::kill(server, SIGKILL);
  return seconds;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::keep_freed_memory();  // as the trainer does
  try {
    const std::string what = argc > 1 ? argv[1] : "";
    const int64_t inputs =
        what.starts_with("gpu") ? muster::bench::kInputsOfGpu : muster::bench::kInputs;
    const size_t floats = muster::bench::layout(inputs).size();
    const double seconds = muster::bench::seconds_of(what, inputs);
    const double gigabytes = 2e-9 * static_cast<double>(floats * sizeof(float));
    fmt::print("{{\"gigabytesPerSecond\": {}, \"seconds\": {}}}\n", gigabytes / seconds, seconds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_ps: {}\n", error.what());
    return 1;
  }
}
