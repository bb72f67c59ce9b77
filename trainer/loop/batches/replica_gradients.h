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
// replicas' tree. The bits do not depend on which device computes which replica. A leaf of the tree
// is the whole work of a replica for a step. `rounded`: see tree_sum.h.
class ReplicaGradients {
 public:
  // `exclusive`: see host::Team. The engines must outlive this object.
  ReplicaGradients(std::vector<FedEngine> devices, bool exclusive, bool rounded = false);

  // Sets the parameters that all devices compute with: see compute::HostedEngine.
  void load(compute::PlacedFloats parameters);
  void release();

  // Pins the host memory that contains parameters and sums, so that devices copy them fast;
  // replaces the memory of the call before. The memory must live until the next call, also one
  // without memory, or until release().
  void pin(std::span<const std::span<float>> memory);

  // A node of the tree, and the memory for the sum under it: host memory, unless the node is a
  // single replica.
  struct Target {
    compute::Subtree node;
    compute::PlacedFloats sum;
  };
  // Computes the sums of `targets`, which cover consecutive replicas, and writes the loss sums of
  // each replica to `sums`. `work_of` returns the work of a replica by its turn; for the same
  // targets a device always has the same turns. `on_complete` is called only for the last target,
  // after all others are done, and only if this target is a single replica that is computed alone.
  using WorkOf = std::function<Work(const Turn& turn)>;
  void compute(std::span<const Target> targets, const WorkOf& work_of,
               std::span<compute::LossSums> sums,
               const compute::Engine::OnComplete& on_complete = {});

  // Computes the gradients of one replica on each device, replica `first` + i on device i, and
  // leaves them on the device. `sums` receives the loss sums of each replica.
  void compute_on_devices(int first, const WorkOf& work_of, std::span<compute::LossSums> sums);

  int devices() const { return static_cast<int>(devices_.size()); }
  // Runs work(device) for each device, on that device's thread.
  void each(const std::function<void(int)>& work) { threads_.each(work); }

 private:
  std::span<float> take();
  void push(compute::Subtree top, int replica, compute::PlacedFloats sum);

  std::vector<FedEngine> devices_;
  std::deque<GradientSum> gradients_;
  std::vector<std::shared_ptr<void>> pinned_;
  const compute::TreeArithmetic arithmetic_;
  DeviceThreads threads_;
  std::vector<compute::Floats> buffers_;  // all buffers besides the targets'
  std::vector<std::span<float>> free_;
  std::vector<Target> wave_;  // present work of each device, with the memory for the sum
  struct Partial {
    compute::Subtree node;
    compute::PlacedFloats sum;
  };
  std::vector<Partial> partials_;  // left children that wait for their right siblings
};

}  // namespace muster::loop
