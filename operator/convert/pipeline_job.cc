#include "operator/convert/pipeline_job.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "common/error.h"
#include "operator/convert/differences.h"
#include "operator/convert/learning_rate.h"
#include "operator/convert/model_settings.h"

namespace muster::convert {

namespace {

constexpr const char* kToBeSet = "PATH_TO_BE_CONFIGURED";
constexpr size_t kLongestName = 40;
constexpr size_t kMostNamed = 5;  // most fields that an error names
constexpr int64_t kMostReplicas = 1000;
constexpr int64_t kSteps = 200'000;  // for a pipeline that trains without end

// Fields that say how TensorFlow works internally and do not change its result.
constexpr std::string_view kWithoutEffect[] = {"batch_queue_capacity",
                                               "num_batch_queue_threads",
                                               "prefetch_queue_capacity",
                                               "startup_delay_steps",
                                               "unpad_groundtruth_tensors",
                                               "retain_original_images",
                                               "num_readers",
                                               "queue_capacity",
                                               "min_after_dequeue",
                                               "shuffle_buffer_size",
                                               "prefetch_size",
                                               "num_visualizations",
                                               "eval_interval_secs",
                                               "inplace_batchnorm_update",
                                               "anchorwise_output",
                                               "use_matmul_gather",
                                               "use_static_shapes",
                                               "keep_checkpoint_every_n_hours"};

std::string no_such_setting(const std::string& field) {
  return field + ": Muster has no such setting";
}

class Conversion {
 public:
  Conversion(const ParsedPipeline& parsed, std::string name)
      : pipeline_(parsed.pipeline), name_(std::move(name)) {
    for (const std::string& field : parsed.unknown)
      result_.not_carried.push_back(no_such_setting(field));
  }

  Converted run() {
    require_model(pipeline_);
    if (!pipeline_.has_train_config()) throw missing("train_config");
    if (!pipeline_.has_train_input_reader()) throw missing("train_input_reader");
    for (const Difference& one : model_differences(pipeline_.model().ssd())) report(one);
    set_training();
    return std::move(result_);
  }

 private:
  static Invalid missing(const char* part) {
    return Invalid(std::string("the pipeline: expected its ") + part +
                   ", in this file or in one of its own, found none");
  }

  void not_carried(const std::string& field, const std::string& why) {
    result_.not_carried.push_back(field + ": " + why);
  }

  void report(const Difference& one) {
    const std::string field = one.path.substr(one.path.rfind('.') + 1);
    if (std::ranges::find(kWithoutEffect, field) != std::end(kWithoutEffect)) return;
    not_carried(one.path,
                fmt::format("{}; Muster's model has {}", one.given.empty() ? "none" : one.given,
                            one.wanted.empty() ? "none" : one.wanted));
  }

  // Names the fields of a part of the pipeline that are not in `known`.
  template <class Message>
  void report_rest(const std::string& path, const Message& rest) {
    for (const Difference& one : differences(path, rest, Message())) {
      const std::string field = one.path.substr(one.path.rfind('.') + 1);
      if (std::ranges::find(kWithoutEffect, field) == std::end(kWithoutEffect))
        not_carried(one.path, one.given + " has no place in a TrainingJob");
    }
  }

  void set_training() {
    Json& training = training_;
    training["model"] = model_of(pipeline_.model().ssd());
    set_initial_weights();
    training["data"]["train"] =
        source_of(pipeline_.train_input_reader(), "train_input_reader", "spec.training.data.train");
    set_augmentation();
    set_validation();
    set_length();
    set_optimizer();
    finish();
  }

  void note_path(const std::string& field, const std::string& path) {
    const bool is_elsewhere = path.find("://") != std::string::npos;  // gs://bucket/...
    if (is_elsewhere || path.find(kToBeSet) != std::string::npos)
      result_.to_set.push_back(field + ": " + path);
  }

  void set_initial_weights() {
    const pipeline::TrainConfig& train = pipeline_.train_config();
    if (train.fine_tune_checkpoint().empty()) return;
    training_["initializeFrom"] = train.fine_tune_checkpoint();
    note_path("spec.training.initializeFrom", train.fine_tune_checkpoint());
    Json options = {{"skipMismatched", true}};
    if (!train.load_all_detection_checkpoint_vars()) options["exclude"] = {"^BoxPredictor_"};
    training_["initializeOptions"] = std::move(options);
  }

  Json source_of(const pipeline::InputReader& reader, const std::string& part,
                 const std::string& field) {
    const auto& paths = reader.tf_record_input_reader().input_path();
    if (paths.empty())
      throw Invalid(part +
                    ".tf_record_input_reader.input_path: expected a file of records, found "
                    "none");
    Json records;
    if (paths.size() == 1)
      records["files"] = paths[0];
    else
      records["fileList"] = std::vector<std::string>(paths.begin(), paths.end());
    for (int i = 0; i < paths.size(); ++i)
      note_path(
          field + ".tfRecord." + (paths.size() == 1 ? "files" : fmt::format("fileList[{}]", i)),
          paths[i]);
    if (!reader.label_map_path().empty()) {
      records["labelMap"] = reader.label_map_path();
      note_path(field + ".tfRecord.labelMap", reader.label_map_path());
    }
    const auto& size = pipeline_.model().ssd().image_resizer().fixed_shape_resizer();
    records["labels"] = "objects";
    records["imageSize"] = {size.height(), size.width()};
    records["scale"] = 2.0 / 255;  // pixels from -1 to 1
    records["offset"] = -1;
    pipeline::InputReader rest = reader;
    rest.clear_tf_record_input_reader();
    rest.clear_label_map_path();
    rest.clear_shuffle();
    report_rest(part, rest);
    return {{"tfRecord", std::move(records)}};
  }

  void set_augmentation() {
    Json stages = Json::array();
    const auto& options = pipeline_.train_config().data_augmentation_options();
    for (int i = 0; i < options.size(); ++i) {
      const std::string path = fmt::format("train_config.data_augmentation_options[{}]", i);
      if (options[i].has_random_horizontal_flip())
        stages.push_back(
            {{"flip",
              {{"probability", as_written(options[i].random_horizontal_flip().probability())}}}});
      else if (options[i].has_ssd_random_crop())
        stages.push_back({{"ssdRandomCrop", Json::object()}});
      else if (options[i].has_random_distort_color())
        stages.push_back({{"colour", Json::object()}});
      if (options[i].random_distort_color().color_ordering() != 0)
        not_carried(path + ".random_distort_color.color_ordering",
                    "contrast is changed last, as with 0");
      if (options[i].ssd_random_crop().operations_size() > 0)
        not_carried(path + ".ssd_random_crop.operations",
                    "the crop is made with the API's default operations");
    }
    Json& train = training_["data"]["train"];
    if (!pipeline_.train_input_reader().shuffle()) train["shuffle"] = false;
    if (!stages.empty()) train["augment"] = std::move(stages);
  }

  void set_validation() {
    const auto& readers = pipeline_.eval_input_reader();
    for (int i = 1; i < readers.size(); ++i)
      not_carried(fmt::format("eval_input_reader[{}]", i),
                  "a TrainingJob has one validation source");
    if (!readers.empty())
      training_["data"]["validation"] =
          source_of(readers[0], "eval_input_reader", "spec.training.data.validation");
    pipeline::EvalConfig rest = pipeline_.eval_config();
    if (rest.has_num_examples())
      not_carried("eval_config.num_examples",
                  fmt::format("{}: the evaluator takes all of the validation data; `take` in "
                              "spec.training.data.validation limits them",
                              rest.num_examples()));
    if (rest.has_max_evals())
      not_carried("eval_config.max_evals",
                  fmt::format("{}: the evaluator takes every checkpoint", rest.max_evals()));
    for (const std::string& metrics : rest.metrics_set())
      if (metrics != "coco_detection_metrics")
        not_carried("eval_config.metrics_set", metrics + ": Muster reports COCO's metrics");
    rest.clear_num_examples();
    rest.clear_max_evals();
    rest.clear_metrics_set();
    rest.clear_use_moving_averages();
    rest.clear_batch_size();
    report_rest("eval_config", rest);
  }

  // The API keeps the moving average beside the weights and does not change the weights by it. Only
  // an evaluation that asks for the average uses it.
  bool averages_weights() const {
    return pipeline_.train_config().optimizer().use_moving_average() &&
           pipeline_.eval_config().use_moving_averages();
  }
  bool is_synchronous() const { return pipeline_.train_config().sync_replicas(); }
  int64_t replicas() const {
    const int64_t wanted = pipeline_.train_config().replicas_to_aggregate();
    return is_synchronous() ? std::clamp<int64_t>(wanted, 1, kMostReplicas) : 1;
  }

  void set_length() {
    const pipeline::TrainConfig& train = pipeline_.train_config();
    const int64_t batch = train.batch_size();
    if (batch < 1)
      throw Invalid(
          fmt::format("train_config.batch_size: expected at least 1 sample, found {}", batch));
    training_["batchSize"] = std::max<int64_t>(1, batch / replicas());
    if (!train.has_batch_size())
      not_carried("train_config.batch_size",
                  fmt::format("none is given; the API's own {} samples are taken", batch));
    if (batch % replicas() != 0)
      not_carried(
          "train_config.batch_size",
          fmt::format("{} samples cannot be shared out evenly to {} replicas; each takes {}", batch,
                      replicas(), training_["batchSize"].get<int64_t>()));
    if (is_synchronous() && train.replicas_to_aggregate() > kMostReplicas)
      not_carried(
          "train_config.replicas_to_aggregate",
          fmt::format("{}; {} replicas are taken", train.replicas_to_aggregate(), kMostReplicas));
    training_["steps"] = train.num_steps() > 0 ? int64_t{train.num_steps()} : kSteps;
    if (train.num_steps() == 0)
      not_carried("train_config.num_steps",
                  fmt::format("a training without an end; {} steps are taken for it", kSteps));
    if (train.max_number_of_boxes() != 100)
      not_carried("train_config.max_number_of_boxes",
                  fmt::format("{}: Muster uses the first 100 boxes of an image",
                              train.max_number_of_boxes()));
    for (const std::string& pattern : train.freeze_variables())
      not_carried("train_config.freeze_variables",
                  "\"" + pattern +
                      "\" is a pattern of TensorFlow's names; spec.training.model.freeze "
                      "takes one of Muster's layers");
    pipeline::TrainConfig rest = train;
    for (const char* known :
         {"batch_size", "data_augmentation_options", "sync_replicas", "optimizer",
          "gradient_clipping_by_norm", "fine_tune_checkpoint", "fine_tune_checkpoint_type",
          "from_detection_checkpoint", "load_all_detection_checkpoint_vars", "num_steps",
          "freeze_variables", "replicas_to_aggregate", "max_number_of_boxes"})
      rest.GetReflection()->ClearField(&rest, rest.GetDescriptor()->FindFieldByName(known));
    report_rest("train_config", rest);
  }

  void set_optimizer() {
    const pipeline::TrainConfig& train = pipeline_.train_config();
    const pipeline::Optimizer& given = train.optimizer();
    Json optimizer = Json::object();
    const pipeline::LearningRate* rate = &given.rms_prop_optimizer().learning_rate();
    if (given.has_momentum_optimizer()) {
      rate = &given.momentum_optimizer().learning_rate();
      optimizer = {{"name", "momentum"},
                   {"momentum", as_written(given.momentum_optimizer().momentum_optimizer_value())}};
    } else if (given.has_adam_optimizer()) {
      rate = &given.adam_optimizer().learning_rate();
      optimizer = {{"name", "adam"}, {"epsilon", as_written(given.adam_optimizer().epsilon())}};
    } else {
      if (!given.has_rms_prop_optimizer())
        not_carried("train_config.optimizer",
                    "none is given; RMSProp with the API's defaults is taken");
      const pipeline::RmsProp& rms = given.rms_prop_optimizer();
      optimizer = {{"name", "rmsprop"},
                   {"momentum", as_written(rms.momentum_optimizer_value())},
                   {"decay", as_written(rms.decay())},
                   {"epsilon", as_written(rms.epsilon())}};
    }
    const LearningRateFields fields = learning_rate_of(*rate);
    if (given.has_momentum_optimizer() && !fields.schedule.is_null() &&
        given.momentum_optimizer().momentum_optimizer_value() != 0)
      not_carried("train_config.optimizer.momentum_optimizer",
                  "TensorFlow multiplies the accumulated gradients by the learning rate of the "
                  "step; Muster accumulates each gradient times the learning rate of its own step");
    optimizer["learningRate"] = fields.rate;
    for (const std::string& note : fields.not_carried)
      result_.not_carried.push_back("train_config.optimizer: " + note);
    set_extras(optimizer);
    training_["optimizer"] = std::move(optimizer);
    if (!fields.schedule.is_null()) training_["learningRateSchedule"] = fields.schedule;
  }

  void set_extras(Json& optimizer) {
    const pipeline::TrainConfig& train = pipeline_.train_config();
    const auto& regularizer =
        pipeline_.model().ssd().feature_extractor().conv_hyperparams().regularizer();
    if (regularizer.has_l2_regularizer())
      optimizer["l2"] = {{"factor", as_written(regularizer.l2_regularizer().weight())}};
    if (averages_weights())
      optimizer["ema"] = {{"decay", as_written(train.optimizer().moving_average_decay())}};
    if (train.gradient_clipping_by_norm() > 0)
      optimizer["clipNorm"] = as_written(train.gradient_clipping_by_norm());
  }

  void finish() {
    Json roles = Json::object();
    if (replicas() > 1) {
      roles["ps"] = {{"replicas", 1}};
      roles["master"] = {{"replicas", 1}};
      roles["worker"] = {{"replicas", replicas() - 1}};
    } else {
      roles["master"] = {{"replicas", 1}};
    }
    if (training_["data"].contains("validation")) roles["evaluator"] = {{"replicas", 1}};
    Json& job = result_.job;
    job["apiVersion"] = "muster.dev/v1alpha1";
    job["kind"] = "TrainingJob";
    job["metadata"] = {{"name", name_}};
    job["spec"]["training"] = std::move(training_);
    job["spec"]["storage"] = {{"volume", {{"persistentVolumeClaim", {{"claimName", name_}}}}}};
    job["spec"]["replicaSpecs"] = std::move(roles);
  }

  const pipeline::Pipeline& pipeline_;
  const std::string name_;
  Json training_;
  Converted result_;
};

}  // namespace

Converted convert_pipeline(const ParsedPipeline& parsed, const std::string& name) {
  try {
    return Conversion(parsed, name).run();
  } catch (const Invalid& error) {
    // A misspelt field may be the reason why the conversion ends.
    std::string message = error.what();
    const size_t named = std::min(parsed.unknown.size(), kMostNamed);
    for (size_t i = 0; i < named; ++i) message += "\n" + no_such_setting(parsed.unknown[i]);
    if (named < parsed.unknown.size())
      message += fmt::format("\nand {} more fields", parsed.unknown.size() - named);
    throw Invalid(message, error.exit_code());
  }
}

std::string job_name_of(const std::string& file_name) {
  std::string name;
  for (const char c : file_name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte))
      name += static_cast<char>(std::tolower(byte));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name.front()))) name = "job-" + name;
  name.resize(std::min(name.size(), kLongestName));
  while (name.back() == '-') name.pop_back();
  return name;
}

}  // namespace muster::convert
