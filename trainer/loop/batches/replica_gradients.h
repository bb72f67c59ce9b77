#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"
#include "trainer/compute/tree_sum.h"
#include "trainer/host/team.h"
#include "trainer/loop/batches/gradient_sum.h"

namespace muster::loop {

// An engine and what it is fed with; one thread uses both.
struct FedEngine {
  compute::Engine& engine;
  Feed& feed;
};

// The gradients of logical replicas, computed by the devices of a process together and added up in
// the replicas' tree. What is computed by which device makes no difference to the bits. A leaf is
// all that a replica computes for a step; `rounded`: see tree_sum.h.
class ReplicaGradients {
 public:
  // `exclusive`: see Team. The engines must outlive it.
  ReplicaGradients(std::vector<FedEngine> devices, bool exclusive, bool rounded = false);

  // The parameters that all devices compute with: see compute::HostedEngine.
  void load(std::span<float> parameters);
  void release();

  // A node of the tree, and where the sum under it is to be.
  struct Target {
    compute::Subtree node;
    std::span<float> sum;
  };
  // The sums under `targets`, whose replicas follow each other, and of each replica what its rows
  // came to. `work_of` says what the replica computes whose turn it is; a device has the same turns
  // whenever it is asked for the same targets. `on_complete` is told of the last target's sum
  // alone, once all others are there, and only where that is one replica's that no other is
  // computed beside.
  using WorkOf = std::function<Work(const Turn& turn)>;
  void compute(std::span<const Target> targets, const WorkOf& work_of,
               std::span<compute::LossSums> sums,
               const compute::Engine::OnComplete& on_complete = {});

  int devices() const { return static_cast<int>(devices_.size()); }
  // Runs work(device) for each, on its thread.
  void each(const std::function<void(int)>& work);

 private:
  std::span<float> take();
  void push(compute::Subtree top, int replica, std::span<float> sum);

  std::vector<FedEngine> devices_;
  std::deque<GradientSum> gradients_;
  const compute::TreeArithmetic arithmetic_;
  std::unique_ptr<host::Team> team_;          // of several devices
  std::vector<std::exception_ptr> failures_;  // of each device
  std::vector<compute::Floats> buffers_;      // all there are beside the targets'
  std::vector<std::span<float>> free_;
  std::vector<Target> wave_;  // what each device computes into, and for which of the targets
  struct Partial {
    compute::Subtree node;
    std::span<float> sum;
  };
  std::vector<Partial> partials_;  // left sides that wait for their right ones
};

}  // namespace muster::loop
