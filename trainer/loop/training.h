#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "trainer/compute/aligned.h"
#include "trainer/data/sources/source.h"
#include "trainer/group/membership.h"
#include "trainer/loop/batches/feed.h"
#include "trainer/loop/batches/replica_gradients.h"
#include "trainer/loop/batches/workload.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// A training.yaml that has been read: unchanged (for manifests and fingerprints) and as values.
struct Training {
  Document document;  // knows the lines, for messages
  Json json;
  spec::TrainingSpec spec;
  std::string fingerprint;  // SHA-256 of json

  // Both throw Invalid (kBadConfig) with every problem, also for features that this build lacks.
  // load() takes the classes that a model leaves open from the training data, and throws Invalid
  // (kBadInput) if they do not say how many there are.
  static Training load(const std::filesystem::path& path);
  static Training from_json(const Json& json, const std::string& source);
};

// How many threads compute, and whether they have the cores to themselves.
struct ThreadChoice {
  int threads = 0;  // 0: by the CPU budget and the shapes
  bool exclusive = true;
  // Reads MUSTER_THREADS, which is set when several replicas share a machine. Throws Invalid.
  static ThreadChoice from_environment(int spec_threads);
};

// Opens the data `name` (train, validation or test) and checks that they fit the model: shapes,
// kind of label, range of labels. The first one (train) fills in what the model leaves open. Throws
// Invalid naming the line of the training and what does not fit. Precondition: the training has
// them.
std::unique_ptr<data::Dataset> open_for(const Training& training, const std::string& name,
                                        compute::ModelSpec& model);
// Does the same for the data that these replicas train on.
data::TrainingData open_to_train(const Training& training, const data::Replicas& replicas,
                                 compute::ModelSpec& model);

// Takes the model's number of labels from its last layer. To be used when the training data, which
// decide that number otherwise, are not at hand: data to evaluate may lack some classes.
void take_label_count_from_layers(compute::ModelSpec& model);

// Data, model and engine of one training process, made to fit each other.
struct Assembly {
  Training training;
  std::unique_ptr<data::Dataset> train;
  std::unique_ptr<compute::Engine> engine;
  std::unique_ptr<compute::Optimizer> optimizer;
  std::unique_ptr<Workload> workload;
  std::unique_ptr<Feed> feed;
  // The engines and feeds of this replica's further devices.
  std::vector<std::unique_ptr<compute::Engine>> more_engines;
  std::vector<std::unique_ptr<Feed>> more_feeds;
  // The copies of the state for a snapshot; they outlive the thread that writes them.
  std::vector<compute::Floats> copies;

  const spec::TrainingSpec& spec() const { return training.spec; }
  std::vector<FedEngine> devices() const;
  std::vector<compute::Engine*> engines() const;  // of the devices
  int threads() const;                            // the total over all devices
  // The time that a device has waited for its batches, for the device that waited longest. May be
  // called from any thread.
  double input_wait_seconds() const;
  // Build, instruction set, precision and threads, which decide a result's bits.
  std::string determinism_fingerprint() const;
};

// `members` processes compute together, each with the spec's devices; `rank` is this one's number.
// `distributed`: they train through parameter servers. With those, evaluation within the training
// throws Invalid (kBadConfig): a rank 0 that comes back would learn nothing of its results.
// `create` makes the engines.
using MakeEngine = std::function<std::unique_ptr<compute::Engine>(const compute::ModelSpec&,
                                                                  const compute::EngineOptions&)>;
Assembly assemble(Training training, int members, bool distributed, const ThreadChoice& threads,
                  int rank = 0, const MakeEngine& create = compute::Engine::create);
// Assembles the process of a job with several members.
Assembly assemble_member(Training training, const group::Membership& membership,
                         const ThreadChoice& threads);

}  // namespace muster::loop
