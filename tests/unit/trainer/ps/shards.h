#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/catalogue.h"
#include "trainer/ps/serving/server.h"

namespace muster::ps {

inline spec::TrainingSpec training(spec::SyncPolicy policy) {
  spec::TrainingSpec spec;
  spec.model = *compute::find_model("mnist-mlp");
  spec.optimizer = compute::Adam{};
  spec.policy = policy;
  return spec;
}

// Shards of a small model behind real servers in this process.
class Shards {
 public:
  using MakeGpu = std::function<std::shared_ptr<compute::cuda::Gpu>()>;
  // `inputs` is the size of a sample; it decides the number of parameters. make_gpu() returns the
  // GPU of a shard, or null.
  Shards(
      spec::SyncPolicy policy, int shards, int members, WireType wire = WireType::float32,
      int inputs = 20, group::Identity identity = group::identity_of_tests(),
      const MakeGpu& make_gpu = [] { return nullptr; })
      : wire_(wire), inputs_(inputs), identity_(std::move(identity)) {
    spec::TrainingSpec spec = training(policy);
    spec.wire = wire;
    compute::ModelSpec model = spec.model;
    model.input_shape = {inputs_};
    model.label_count = 10;
    layout_.emplace(compute::make_layout(model));
    for (int shard = 0; shard < shards; ++shard) {
      hosts_.push_back(std::make_unique<ShardHost>(
          spec, HostIdentity{"uid", "1", "training", testing::TempDir(), shard, shards},
          make_gpu()));
      addresses_.push_back(free_address());
      servers_.push_back(std::make_unique<Server>(addresses_.back(), identity_,
                                                  std::vector<ShardHost*>{hosts_.back().get()}));
      hosts_.back()->open(opening(shard, members));
    }
  }
  // Returns the request with which rank 0 opens the first generation.
  OpenRequest opening(int shard, int members) const {
    OpenRequest request;
    request.set_job_uid("uid");
    request.set_version("1");
    request.set_training_fingerprint("training");
    request.set_layout_fingerprint(layout_->fingerprint());
    request.set_generation(1);
    request.set_shard(static_cast<uint32_t>(shard));
    request.set_content(OpenRequest::INITIALIZE);
    request.add_input_shape(inputs_);
    request.set_label_count(10);
    request.set_members(static_cast<uint32_t>(members));
    request.set_tickets_per_epoch(1000);
    request.set_total_tickets(1000);
    return request;
  }
  const compute::ParameterLayout& layout() const { return *layout_; }
  WireType wire() const { return wire_; }
  const group::Identity& identity() const { return identity_; }
  const std::string& address(size_t shard) const { return addresses_[shard]; }
  int count() const { return static_cast<int>(hosts_.size()); }
  ShardHost& host(size_t shard) { return *hosts_[shard]; }
  void shut_down(size_t shard) { servers_[shard].reset(); }

 private:
  const WireType wire_;
  const int inputs_;
  const group::Identity identity_;
  std::optional<compute::ParameterLayout> layout_;
  std::vector<std::unique_ptr<ShardHost>> hosts_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace muster::ps
