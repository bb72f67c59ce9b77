#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "common/document.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// Loss and accuracy of a model on data, forward only.
struct Evaluation {
  compute::LossSums sums;
  bool classification = true;
  double loss() const;
  double accuracy() const;
  Json json() const;  // {"loss", "accuracy"}; without accuracy for regression
};

Evaluation evaluate(compute::Engine& engine, const data::Dataset& dataset, int64_t batch_size,
                    bool classification);

// The validation and test data of a training spec, opened when first needed.
class EvaluationData {
 public:
  explicit EvaluationData(const Training& training) : training_(training) {}
  // Null where the spec has none.
  const data::Dataset* validation();
  const data::Dataset* test();

 private:
  const Training& training_;
  std::unique_ptr<data::Dataset> validation_;
  std::unique_ptr<data::Dataset> test_;
};

// Evaluates what is in the engine: on the validation data, and with `final` on the test data too;
// writes evaluations/<step>.json below `storage` (unless empty) and returns its content.
Json evaluate_step(compute::Engine& engine, const Training& training, EvaluationData& data,
                   const std::filesystem::path& storage, uint64_t step, bool final);

}  // namespace muster::loop
