#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/document.h"
#include "trainer/compute/aligned.h"
#include "trainer/data/dataset.h"
#include "trainer/group/membership.h"
#include "trainer/loop/batches/feed.h"
#include "trainer/loop/batches/replica_gradients.h"
#include "trainer/loop/batches/workload.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// A training.yaml, read: as it stands (for manifests and fingerprints) and as values.
struct Training {
  Document document;  // says where what is wrong stands
  Json json;
  spec::TrainingSpec spec;
  std::string fingerprint;  // SHA-256 of json

  // Throws Invalid (kBadConfig) with every problem; also for what this build cannot do yet.
  static Training load(const std::filesystem::path& path);
  static Training from_json(const Json& json, const std::string& source);
};

// How many threads compute, and whether others want the same cores.
struct ThreadChoice {
  int threads = 0;  // 0: by the CPU budget and the shapes
  bool exclusive = true;
  // MUSTER_THREADS (set where several replicas share a machine) and MUSTER_EXCLUSIVE. Throws
  // Invalid.
  static ThreadChoice from_environment(int spec_threads);
};

// Opens the data `name` (train, validation or test) and checks that they fit the model: shapes,
// kind of label, range of labels. The first one (train) fills in what the model leaves open. Throws
// Invalid naming the line of the training and what does not fit. Precondition: the training has
// them.
std::unique_ptr<data::Dataset> open_for(const Training& training, const std::string& name,
                                        compute::ModelSpec& model);
// The same of what these replicas train on.
data::TrainingData open_to_train(const Training& training, const data::Replicas& replicas,
                                 compute::ModelSpec& model);

// Training data decide how many labels a model has, and its last layer must have as many outputs.
// Where they are not at hand: by that layer, for data to evaluate may lack some classes.
void take_label_count_from_layers(compute::ModelSpec& model);

// Data, model and engine of one training process, made to fit each other.
struct Assembly {
  Training training;
  std::unique_ptr<data::Dataset> train;
  std::unique_ptr<compute::Engine> engine;
  std::unique_ptr<compute::Optimizer> optimizer;
  std::unique_ptr<Workload> workload;
  std::unique_ptr<Feed> feed;
  // Of further devices of this replica.
  std::vector<std::unique_ptr<compute::Engine>> more_engines;
  std::vector<std::unique_ptr<Feed>> more_feeds;
  // Of the state, for a snapshot: they outlive whoever writes them.
  std::vector<compute::Floats> copies;

  const spec::TrainingSpec& spec() const { return training.spec; }
  std::vector<FedEngine> devices() const;
  int threads() const;  // of all devices
  // How long the device has waited for its batches that waited longest. From any thread.
  double input_wait_seconds() const;
  // Build, instruction set, precision, threads: what decides a result's bits.
  std::string determinism_fingerprint() const;
};

// `members`: how many processes compute together, each with the spec's devices, and which of them
// this is by `rank`; `distributed`: through parameter servers. Throws Invalid (kBadConfig) for
// evaluation within a training by those, where a rank 0 that comes back would learn nothing of it.
// `create`: makes the engines.
using MakeEngine = std::function<std::unique_ptr<compute::Engine>(const compute::ModelSpec&,
                                                                  const compute::EngineOptions&)>;
Assembly assemble(Training training, int members, bool distributed, const ThreadChoice& threads,
                  int rank = 0, const MakeEngine& create = compute::Engine::create);
// Of a job of several.
Assembly assemble_member(Training training, const group::Membership& membership,
                         const ThreadChoice& threads);

}  // namespace muster::loop
