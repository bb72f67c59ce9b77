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

// A training.yaml, as unchanged JSON (for manifests and fingerprints) and as values.
struct Training {
  Document document;  // knows the lines, for messages
  Json json;
  spec::TrainingSpec spec;
  std::string fingerprint;  // SHA-256 of json

  // Both throw Invalid (kBadConfig) with every problem, also for features that this build lacks. If
  // the model leaves its number of classes open, load() takes it from the training data, and throws
  // Invalid (kBadInput) if the data do not tell it. If `storage`, the folder of the job, has
  // checkpoints of a model of tables, the model's inputs stay as they are, whatever is in the
  // training data now.
  static Training load(const std::filesystem::path& path,
                       const std::filesystem::path& storage = {});
  static Training from_json(const Json& json, const std::string& source);
};

// The number of computing threads, and whether they have the cores to themselves.
struct ThreadChoice {
  int threads = 0;  // 0: chosen by the CPU budget and the shapes
  bool exclusive = true;
  // Reads MUSTER_THREADS, which is set when several replicas share a machine. Throws Invalid.
  static ThreadChoice from_environment(int spec_threads);
};

// Opens the data `name` (train, validation or test) and checks that they fit the model: shapes,
// kind of label, range of labels. The first data opened (train) fill in the values that the model
// leaves open. Throws Invalid naming the line in the training and what does not fit. Precondition:
// the training has these data.
std::unique_ptr<data::Dataset> open_for(const Training& training, const std::string& name,
                                        compute::ModelSpec& model);
// Opens and checks, in the same way, the data that these replicas train on.
data::TrainingData open_to_train(const Training& training, const data::Replicas& replicas,
                                 compute::ModelSpec& model);

// Gives the data that are tables what a model keeps of its training data; null: nothing is given.
void use_preparation(spec::DataSpec& data, const Json& prepared);

// Takes the model's number of labels from its last layer. Use this if the training data, which
// otherwise decide the number, are not available: data for evaluation may lack some classes.
void take_label_count_from_layers(compute::ModelSpec& model);

// The data, model and engine of one training process, which fit each other.
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
  std::vector<compute::Engine*> engines() const;  // the engines of devices()
  int threads() const;                            // the total over all devices
  // Returns the longest time that a device has waited for its batches. Thread-safe.
  double input_wait_seconds() const;
  // Returns what two members must have in common to exchange gradients: the layout of the
  // parameters, and how rows of a table become samples.
  std::string layout_fingerprint() const;
  // Returns build, instruction set, precision and threads, which decide the bits of results.
  std::string determinism_fingerprint() const;
};

// `members` processes compute together, each with the spec's devices; `rank` is this one's number.
// `distributed`: the members train through parameter servers. With parameter servers, evaluation
// within the training throws Invalid (kBadConfig), because a restarted rank 0 could not get the
// results of earlier evaluations. `create` makes the engines.
using MakeEngine = std::function<std::unique_ptr<compute::Engine>(const compute::ModelSpec&,
                                                                  const compute::EngineOptions&)>;
Assembly assemble(Training training, int members, bool distributed, const ThreadChoice& threads,
                  int rank = 0, const MakeEngine& create = compute::Engine::create);
// Assembles the process of a job with several members.
Assembly assemble_member(Training training, const group::Membership& membership,
                         const ThreadChoice& threads);

}  // namespace muster::loop
