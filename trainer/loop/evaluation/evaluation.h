#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "trainer/compute/loss.h"
#include "trainer/data/sources/dataset.h"
#include "trainer/loop/evaluation/pictures.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// The result of evaluating a model on data, forward only.
struct Evaluation {
  uint64_t samples = 0;
  std::vector<compute::Metric> metrics;  // "loss" first; without metrics that the data do not allow
  // {"averagePrecisionByClass": {"cat": 0.5}}: each metric of single classes, by the classes'
  // names, or by their numbers if they have no names. A class without anything to measure is left
  // out.
  Json by_class = Json::object();
  std::vector<Picture> pictures;  // for a detector: of the first spec.summary_pictures samples

  // Returns {"loss", "accuracy", ...}: each metric by its name, and the metrics of single classes.
  Json json() const;
};

// Calls `take` with each number of an evaluation's json() and its tag in TensorBoard:
// "validation_accuracy", "validation_average_precision_by_class/cat".
void for_each_number(const std::string& data, const Json& evaluation,
                     const std::function<void(const std::string& tag, double value)>& take);

// Returns the metrics of an evaluation's json() that are numbers, without those of single classes.
std::map<std::string, double> numbers_of(const Json& evaluation);

// Returns how an evaluation measures these data: numbers in the unit that a table has them in.
compute::Measuring measuring_of(const data::Dataset& dataset);

// Evaluates the metrics of the model's loss, in batches of spec.batch_size rows. Returns nothing if
// `stop` was requested before all samples were seen.
std::optional<Evaluation> evaluate(compute::Engine& engine, const data::Dataset& dataset,
                                   const spec::TrainingSpec& spec, std::stop_token stop = {});

// The validation and test data of a training, opened and checked at once, so that bad data are
// reported before the training and not after it.
class EvaluationData {
 public:
  struct Part {
    std::string name;  // "validation" or "test"
    std::unique_ptr<data::Dataset> dataset;
    std::string problem;  // why `dataset` is null: the message of Invalid
  };

  // Opens the parts in `names` for which the training has data. The first usable part fills in the
  // values that the model leaves open. Throws Unavailable if a file cannot be read at the moment.
  explicit EvaluationData(Training& training,
                          const std::vector<std::string>& names = {"validation", "test"});
  EvaluationData(EvaluationData&&) = default;

  const std::vector<Part>& parts() const { return parts_; }
  // Returns all problems, one after the other; "" if there are none.
  std::string problems() const;
  bool any_usable() const;
  // Throws Invalid with problems().
  void require_all() const;

 private:
  std::vector<Part> parts_;
};

// Evaluates the engine's parameters on the validation data and logs the result. Returns nothing if
// `stop` was requested before the end. Precondition: `data` has usable validation data.
std::optional<Evaluation> evaluate_validation(compute::Engine& engine, const Training& training,
                                              const EvaluationData& data, uint64_t step,
                                              std::stop_token stop);

// Writes evaluations/<step>.json below `storage` (unless empty). Throws WriteError.
void write_evaluation(const std::filesystem::path& storage, const Json& evaluation);

// Evaluates the engine's parameters, which are those of `position`, on the validation data, and
// with `final` also on the test data. Writes evaluations/<step>.json below `storage` (unless empty)
// and returns its content. Publishes the pictures of each part. For unusable data the content has
// {"error": problem}. `known` is an earlier result for the same weights: its parts are not
// evaluated again. `complete`, if given, may add to the content before it is written. Returns
// nothing, and writes no file, if `stop` was requested before the end.
std::optional<Json> evaluate_step(compute::Engine& engine, const Training& training,
                                  const EvaluationData& data, const std::filesystem::path& storage,
                                  const checkpoint::Position& position, bool final,
                                  const ShowPicture& show, const Json& known, std::stop_token stop,
                                  const std::function<void(Json&)>& complete = {});

}  // namespace muster::loop
