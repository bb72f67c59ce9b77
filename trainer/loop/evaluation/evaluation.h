#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/document.h"
#include "trainer/compute/loss.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// What a model comes to on data, forward only.
struct Evaluation {
  uint64_t samples = 0;
  std::vector<compute::Metric> metrics;  // "loss" first
  // Precondition: there is one of this name.
  double value(const std::string& metric) const;
  Json json() const;  // {"loss", "accuracy", ...}: each metric by its name
};

// By the metrics of the model's loss, in batches of spec.batch_size rows. Nothing if `stop` was
// requested before all was seen.
std::optional<Evaluation> evaluate(compute::Engine& engine, const data::Dataset& dataset,
                                   const spec::TrainingSpec& spec, std::stop_token stop = {});

// The validation and test data of a training, opened and checked at once: bad data are told before
// the training and not after it.
class EvaluationData {
 public:
  struct Part {
    std::string name;  // "validation" or "test"
    std::unique_ptr<data::Dataset> dataset;
    std::string problem;  // why there is none: what Invalid said
  };

  // What the training has no data for is left out. The first part that can be used fills in what
  // the model leaves open. Throws Unavailable where a file cannot be read at the moment.
  // `names`: which of them are wanted.
  explicit EvaluationData(Training& training,
                          const std::vector<std::string>& names = {"validation", "test"});
  EvaluationData(EvaluationData&&) = default;

  const std::vector<Part>& parts() const { return parts_; }
  // All problems, one after the other; "" if there are none.
  std::string problems() const;
  bool any_usable() const;
  // Throws Invalid with problems().
  void require_all() const;

 private:
  std::vector<Part> parts_;
};

// Evaluates what is in the engine on the validation data, and says so in the log. Nothing if `stop`
// was requested meanwhile. Precondition: `data` have them, and they can be used.
std::optional<Evaluation> evaluate_validation(compute::Engine& engine, const Training& training,
                                              const EvaluationData& data, uint64_t step,
                                              std::stop_token stop);

// Writes evaluations/<step>.json below `storage` (unless empty). Throws WriteError.
void write_evaluation(const std::filesystem::path& storage, const Json& evaluation);

// Evaluates what is in the engine: on the validation data, and with `final` on the test data too;
// writes evaluations/<step>.json below `storage` (unless empty) and returns its content. Data that
// cannot be used stand in it as {"error": problem}. What `known` has of that step already, an
// earlier result for these weights, is not evaluated again.
Json evaluate_step(compute::Engine& engine, const Training& training, const EvaluationData& data,
                   const std::filesystem::path& storage, uint64_t step, bool final,
                   const Json& known = {});

}  // namespace muster::loop
