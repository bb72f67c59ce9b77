#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"
#include "trainer/compute/tree_sum.h"
#include "trainer/loop/batches/device_threads.h"
#include "trainer/loop/batches/gradient_sum.h"

namespace muster::loop {

// An engine and the feed of its batches; one thread uses both.
struct FedEngine {
  compute::Engine& engine;
  Feed& feed;
};

// Computes the gradients of logical replicas on all devices of a process and adds them up in the
// replicas' tree. The bits do not depend on which device computes what. A leaf of the tree is all
// that a replica computes for a step; `rounded`: see tree_sum.h.
class ReplicaGradients {
 public:
  // `exclusive`: see host::Team. The engines must outlive it.
  ReplicaGradients(std::vector<FedEngine> devices, bool exclusive, bool rounded = false);

  // Sets the parameters that all devices compute with: see compute::HostedEngine.
  void load(std::span<float> parameters);
  void release();

  // Says which memory of the host parameters and sums lie in, so that devices copy them fast; in
  // place of what it was told before. It must live until it is told of other memory, or none, or
  // release() is called.
  void pin(std::span<const std::span<float>> memory);

  // A node of the tree, and the memory for the sum under it.
  struct Target {
    compute::Subtree node;
    std::span<float> sum;
  };
  // Computes the sums under `targets`, which cover consecutive replicas, and into `sums` the loss
  // sums of each replica. `work_of` returns the work of the replica whose turn it is; for the same
  // targets a device always has the same turns. `on_complete` is called for the last target only,
  // once all others are done, and only if that target is a single replica computed while no other
  // is.
  using WorkOf = std::function<Work(const Turn& turn)>;
  void compute(std::span<const Target> targets, const WorkOf& work_of,
               std::span<compute::LossSums> sums,
               const compute::Engine::OnComplete& on_complete = {});

  // Computes on each device the gradients of one replica, replica `first` + i on device i, and
  // leaves them there. `sums` receives the loss sums of each.
  void compute_on_devices(int first, const WorkOf& work_of, std::span<compute::LossSums> sums);

  int devices() const { return static_cast<int>(devices_.size()); }
  // Runs work(device) for each device, on that device's thread.
  void each(const std::function<void(int)>& work) { threads_.each(work); }

 private:
  std::span<float> take();
  void push(compute::Subtree top, int replica, std::span<float> sum);

  std::vector<FedEngine> devices_;
  std::deque<GradientSum> gradients_;
  std::vector<std::shared_ptr<void>> pinned_;
  const compute::TreeArithmetic arithmetic_;
  DeviceThreads threads_;
  std::vector<compute::Floats> buffers_;  // all buffers besides the targets'
  std::vector<std::span<float>> free_;
  std::vector<Target> wave_;  // what each device computes now, and into which memory
  struct Partial {
    compute::Subtree node;
    std::span<float> sum;
  };
  std::vector<Partial> partials_;  // left children that wait for their right siblings
};

}  // namespace muster::loop
