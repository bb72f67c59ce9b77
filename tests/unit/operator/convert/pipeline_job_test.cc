#include "operator/convert/pipeline_job.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/system/file.h"
#include "operator/api/validate.h"
#include "operator/convert/model_settings.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::convert {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

std::string fixture(const std::string& name) {
  return read_file(std::filesystem::path(MUSTER_SOURCE_DIR) / "tests/fixtures/pipelines" / name);
}

Converted converted(const std::string& text) {
  return convert_pipeline(parse_pipeline({{"pipeline.config", text}}), "job");
}

// The COCO pipeline with a text in it replaced.
Converted converted_with(const std::string& from, const std::string& to) {
  std::string text = fixture("ssd_mobilenet_v1_coco.config");
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return converted(text.replace(at, from.size(), to));
}

Json training_of(const Converted& one) {
  return one.job["spec"]["training"];
}

std::vector<std::string> problems_of(const Json& job) {
  Document document = Document::parse(job.dump(), "job.yaml");
  std::vector<std::string> texts;
  for (const Problem& problem : api::validate(document)) texts.push_back(problem.text());
  return texts;
}

class PublishedPipeline : public testing::TestWithParam<const char*> {};

TEST_P(PublishedPipeline, BecomesAJobThatIsValid) {
  const Converted one = converted(fixture(std::string(GetParam()) + ".config"));
  EXPECT_THAT(problems_of(one.job), IsEmpty());
  EXPECT_THAT(one.to_set, Each(HasSubstr("PATH_TO_BE_CONFIGURED/")));
  const Json training = training_of(one);
  EXPECT_EQ(training["model"]["name"], "ssd-mobilenet-v1");
  EXPECT_EQ(training["data"]["train"]["augment"].size(), 2u);
  EXPECT_TRUE(training["data"].contains("validation"));
}

INSTANTIATE_TEST_SUITE_P(All, PublishedPipeline,
                         testing::Values("ssd_mobilenet_v1_coco", "ssd_mobilenet_v1_pets",
                                         "ssd_mobilenet_v1_0.75_depth_300x300_coco14_sync",
                                         "ssd_mobilenet_v1_quantized_300x300_coco14_sync",
                                         "ssd_mobilenet_v1_0.75_depth_quantized_300x300_pets_sync"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](unsigned char c) { return !std::isalnum(c); });
                           return name;
                         });

TEST(ConvertPipeline, TakesOverWhatTheCocoPipelineSays) {
  const Converted one = converted(fixture("ssd_mobilenet_v1_coco.config"));
  const Json training = training_of(one);
  EXPECT_EQ(training["model"], Json::parse(R"({"name": "ssd-mobilenet-v1", "classes": 90,
      "normalizationMomentum": 0.9997})"));
  EXPECT_EQ(training["batchSize"], 24);
  EXPECT_EQ(training["steps"], 200000);
  const Json& optimizer = training["optimizer"];
  EXPECT_EQ(optimizer["name"], "rmsprop");
  EXPECT_EQ(optimizer["learningRate"], 0.004);
  EXPECT_EQ(optimizer["momentum"], 0.9);
  EXPECT_EQ(optimizer["decay"], 0.9);
  EXPECT_EQ(optimizer["epsilon"], 1);
  EXPECT_EQ(training["learningRateSchedule"], Json::parse(R"({"exponential": {"decaySteps": 800720,
      "rate": 0.95, "staircase": true}})"));
  EXPECT_EQ(training["initializeFrom"], "PATH_TO_BE_CONFIGURED/model.ckpt");
  EXPECT_EQ(training["initializeOptions"],
            Json::parse(R"({"skipMismatched": true, "exclude": ["^BoxPredictor_"]})"));
  const Json& records = training["data"]["train"]["tfRecord"];
  EXPECT_EQ(records["files"], "PATH_TO_BE_CONFIGURED/mscoco_train.record");
  EXPECT_EQ(records["labelMap"], "PATH_TO_BE_CONFIGURED/mscoco_label_map.pbtxt");
  EXPECT_EQ(records["imageSize"], Json::parse("[300, 300]"));
  EXPECT_EQ(training["data"]["train"]["augment"],
            Json::parse(R"([{"flip": {"probability": 0.5}}, {"ssdRandomCrop": {}}])"));
  EXPECT_EQ(one.job["spec"]["replicaSpecs"],
            Json::parse(R"({"master": {"replicas": 1}, "evaluator": {"replicas": 1}})"));
  EXPECT_THAT(one.to_set,
              ElementsAre("spec.training.initializeFrom: PATH_TO_BE_CONFIGURED/model.ckpt",
                          StartsWith("spec.training.data.train.tfRecord.files: "),
                          StartsWith("spec.training.data.train.tfRecord.labelMap: "),
                          StartsWith("spec.training.data.validation.tfRecord.files: "),
                          StartsWith("spec.training.data.validation.tfRecord.labelMap: ")));
  EXPECT_EQ(optimizer["l2"], Json::parse(R"({"factor": 4e-05})"));
  EXPECT_FALSE(optimizer.contains("ema"));  // no evaluation asks for it
  EXPECT_FALSE(optimizer.contains("clipNorm"));
  // The model is Muster's own.
  EXPECT_THAT(one.not_carried, Each(Not(StartsWith("model.ssd.loss"))));
  EXPECT_THAT(one.not_carried, Contains(StartsWith("eval_config.max_evals: 10")));
}

TEST(ConvertPipeline, TakesOverASoftmaxAndItsScale) {
  std::string text = fixture("ssd_mobilenet_v1_coco.config");
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
  };
  replace("weighted_sigmoid {}", "weighted_softmax { logit_scale: 2.5 }");
  // The scores of the pipeline do not belong to its loss yet.
  const Converted other = converted(text);
  EXPECT_THAT(other.not_carried,
              Contains("model.ssd.post_processing.score_converter: SIGMOID; Muster's model has "
                       "SOFTMAX"));
  EXPECT_THAT(other.not_carried, Contains(StartsWith("model.ssd.post_processing.logit_scale: ")));
  replace("score_converter: SIGMOID", "score_converter: SOFTMAX logit_scale: 2.5");
  const Converted one = converted(text);
  EXPECT_EQ(training_of(one)["model"], Json::parse(R"({"name": "ssd-mobilenet-v1", "classes": 90,
      "normalizationMomentum": 0.9997, "classificationLoss": "softmax", "logitScale": 2.5})"));
  EXPECT_THAT(one.not_carried, Each(Not(StartsWith("model.ssd"))));
  EXPECT_THAT(problems_of(one.job), IsEmpty());
}

TEST(ConvertPipeline, NamesWhatAQuantizedPipelineLosesAndSharesOutItsBatch) {
  const Converted one =
      converted(fixture("ssd_mobilenet_v1_0.75_depth_quantized_300x300_pets_sync.config"));
  const Json training = training_of(one);
  EXPECT_EQ(training["model"], Json::parse(R"({"name": "ssd-mobilenet-v1", "classes": 37,
      "depthMultiplier": 0.75, "normalizationMomentum": 0.9})"));
  EXPECT_EQ(training["batchSize"], 16);
  EXPECT_EQ(training["optimizer"]["name"], "momentum");
  EXPECT_EQ(training["optimizer"]["learningRate"], 0.2);
  EXPECT_EQ(training["learningRateSchedule"], Json::parse(R"({"cosine": {"decaySteps": 2000}})"));
  EXPECT_FALSE(training["initializeOptions"].contains("exclude"));
  EXPECT_EQ(one.job["spec"]["replicaSpecs"], Json::parse(R"({"ps": {"replicas": 1},
      "master": {"replicas": 1}, "worker": {"replicas": 7}, "evaluator": {"replicas": 1}})"));
  for (const char* lost :
       {"graph_rewriter: Muster has no such setting",
        "model.ssd.loss.classification_loss.weighted_sigmoid_focal: weighted_sigmoid_focal; "
        "Muster's model has weighted_sigmoid",
        "model.ssd.encode_background_as_zeros: true; Muster's model has false",
        "model.ssd.normalize_loc_loss_by_codesize: true; Muster's model has false",
        "model.ssd.feature_extractor.override_base_feature_extractor_hyperparams: true",
        "model.ssd.box_predictor.convolutional_box_predictor.class_prediction_bias_init: -4.6",
        "random_normal_initializer",
        "model.ssd.loss.hard_example_miner: none; Muster's model has "})
    EXPECT_THAT(one.not_carried, Contains(HasSubstr(lost)));
  for (const char* of_no_effect :
       {"inplace_batchnorm_update", "use_matmul_gather", "startup_delay_steps", "unpad_groundtruth",
        "num_readers", "alpha", "freeze_batchnorm"})
    EXPECT_THAT(one.not_carried, Each(Not(HasSubstr(of_no_effect))));
}

TEST(ConvertPipeline, ReadsThreeFilesInTheFormOfOne) {
  const std::string whole = fixture("ssd_mobilenet_v1_coco.config");
  const pipeline::Pipeline pipeline = parse_pipeline({{"pipeline.config", whole}}).pipeline;
  const std::vector<PipelineFile> parts = {
      {"input.config", pipeline.train_input_reader().DebugString()},
      {"model.config", pipeline.model().DebugString()},
      {"train.config", pipeline.train_config().DebugString()},
      {"eval.config", pipeline.eval_config().DebugString()},
      {"eval_input.config", pipeline.eval_input_reader(0).DebugString()}};
  EXPECT_EQ(convert_pipeline(parse_pipeline(parts), "job").job, converted(whole).job);
}

struct Refused {
  const char* file;
  const char* words;
};
class RefusedPipeline : public testing::TestWithParam<Refused> {};

TEST_P(RefusedPipeline, IsNamed) {
  EXPECT_THAT([] { converted(fixture(GetParam().file)); },
              ThrowsMessage<Invalid>(HasSubstr(GetParam().words)));
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedPipeline,
    testing::Values(Refused{"ssd_mobilenet_v1_fpn.config", "found \"ssd_mobilenet_v1_fpn\""},
                    Refused{"ssd_mobilenet_v1_ppn.config", "found \"ssd_mobilenet_v1_ppn\""},
                    Refused{"faster_rcnn.config", "found faster_rcnn"}),
    [](const auto& info) {
      const std::string file = info.param.file;
      return file.substr(file.size() - 11, 4) == "_fpn"   ? "Fpn"
             : file.substr(file.size() - 11, 4) == "_ppn" ? "Ppn"
                                                          : "FasterRcnn";
    });

TEST(ConvertPipeline, RefusesNumbersThatNoTrainingCanHave) {
  struct Case {
    const char *from, *to, *words;
  };
  for (const Case& one :
       {Case{"  batch_size: 24", "  batch_size: 0", "batch_size: expected at least 1"},
        Case{"decay_steps: 800720", "decay_steps: 0", "decay_steps: expected"},
        Case{"initial_learning_rate: 0.004", "initial_learning_rate: -1",
             "expected a finite learning rate of at least 0, found -1"}})
    EXPECT_THAT([&] { converted_with(one.from, one.to); },
                ThrowsMessage<Invalid>(HasSubstr(one.words)));
}

TEST(ConvertPipeline, NamesABatchThatIsNotGivenAndFilesThatAreElsewhere) {
  EXPECT_THAT(
      converted_with("  batch_size: 24", "").not_carried,
      Contains("train_config.batch_size: none is given; the API's own 32 samples are taken"));
  const std::string bucket = "gs://bucket/train.record";
  EXPECT_THAT(converted_with("PATH_TO_BE_CONFIGURED/mscoco_train.record", bucket).to_set,
              Contains("spec.training.data.train.tfRecord.files: " + bucket));
}

TEST(ConvertPipeline, TakesOverAllFilesOfASource) {
  const Converted one = converted_with("input_path: \"PATH_TO_BE_CONFIGURED/mscoco_train.record\"",
                                       "input_path: [\"a.record\", \"gs://bucket/b\"]");
  const Json records = training_of(one)["data"]["train"]["tfRecord"];
  EXPECT_EQ(records["fileList"], Json::parse(R"(["a.record", "gs://bucket/b"])"));
  EXPECT_FALSE(records.contains("files"));
  EXPECT_THAT(one.to_set, Contains("spec.training.data.train.tfRecord.fileList[1]: gs://bucket/b"));
  EXPECT_THAT(problems_of(one.job), IsEmpty());
}

TEST(ConvertPipeline, PassesOverAByteOrderMark) {
  const std::string text = fixture("ssd_mobilenet_v1_coco.config");
  EXPECT_EQ(converted("\xef\xbb\xbf" + text).job, converted(text).job);
}

TEST(ConvertPipeline, RefusesWhatIsNoPipelineWithFileAndLine) {
  EXPECT_THAT([] { converted("model {\n  ssd {\n    num_classes: many\n  }\n}"); },
              ThrowsMessage<Invalid>(HasSubstr("pipeline.config:3: column ")));
  EXPECT_THAT([] { converted("model {"); },
              ThrowsMessage<Invalid>(HasSubstr("found an error at pipeline.config:1")));
  EXPECT_THAT([] { converted("apiVersion: 1"); },
              ThrowsMessage<Invalid>(HasSubstr("the first at pipeline.config:1: apiVersion")));
  EXPECT_THAT([] { converted(""); }, ThrowsMessage<Invalid>(HasSubstr("found no field")));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "a {";
  EXPECT_THROW(converted("model { ssd { " + deep), Invalid);
  const PipelineFile model = {"model.config", "ssd { num_classes: 1 }"};
  EXPECT_THAT(
      [&] {
        parse_pipeline({model, model});
      },
      ThrowsMessage<Invalid>(HasSubstr("model.config: expected one model, found a second")));
}

TEST(ConvertPipeline, TakesTheSeparatorsThatProtobufFailsAtAndNoOthers) {
  const std::string whole = fixture("ssd_mobilenet_v1_coco.config");
  std::string other = whole;
  const size_t at = other.find("num_classes: 90");
  other.replace(at, 15, "unknown: 'a, \\', b'; also: 1, # it's, \"\n num_classes: 90,");
  EXPECT_EQ(converted(other).job, converted(whole).job);
  EXPECT_THAT(converted(other).not_carried, Contains(HasSubstr(": also: Muster has no such")));
  EXPECT_EQ(
      training_of(converted_with("PATH_TO_BE_CONFIGURED/model.ckpt", "a,b;c"))["initializeFrom"],
      "a,b;c");
  EXPECT_EQ(converted("\xEF\xBB\xBF" + whole).job, converted(whole).job);
}

TEST(ConvertPipeline, SaysWhichPartIsMissing) {
  const std::string whole = fixture("ssd_mobilenet_v1_coco.config");
  const pipeline::Pipeline pipeline = parse_pipeline({{"pipeline.config", whole}}).pipeline;
  const auto without = [&](const char* field) {
    pipeline::Pipeline part = pipeline;
    part.GetReflection()->ClearField(&part, part.GetDescriptor()->FindFieldByName(field));
    return part.DebugString();
  };
  for (const char* field : {"train_config", "train_input_reader"})
    EXPECT_THAT([&] { converted(without(field)); },
                ThrowsMessage<Invalid>(HasSubstr(std::string("expected its ") + field)));
  EXPECT_THAT([&] { converted(without("model")); }, ThrowsMessage<Invalid>(HasSubstr("no model")));
  const Converted one = converted(without("eval_input_reader"));
  EXPECT_FALSE(training_of(one)["data"].contains("validation"));
  EXPECT_FALSE(one.job["spec"]["replicaSpecs"].contains("evaluator"));
  EXPECT_THAT(problems_of(one.job), IsEmpty());
}

TEST(ConvertPipeline, TakesOverADistortionOfColours) {
  const char* from = "ssd_random_crop {}";
  const auto with = [&](const std::string& settings) {
    return converted_with(from, ("random_distort_color { " + settings + " }").c_str());
  };
  const Converted plain = with("");
  EXPECT_EQ(training_of(plain)["data"]["train"]["augment"][1], Json::parse(R"({"colour": {}})"));
  EXPECT_THAT(plain.not_carried, Each(Not(HasSubstr("distort"))));
  EXPECT_THAT(with("color_ordering: 1").not_carried, Contains(HasSubstr("color_ordering")));
}

TEST(ConvertPipeline, NamesMisspeltFieldsThoughTheConversionFails) {
  EXPECT_THAT([] { converted_with("num_classes: 90", "num_clases: 90"); },
              ThrowsMessage<Invalid>(AllOf(HasSubstr("num_classes: expected 1 or more"),
                                           HasSubstr("num_clases: Muster has no such setting"))));
}

TEST(ConvertPipeline, NamesEachSettingThatDiffersFromMustersModel) {
  const std::pair<const char*, const char*> changes[] = {
      {"matched_threshold: 0.5", "matched_threshold: 0.6"},
      {"y_scale: 10", "y_scale: 5"},
      {"max_scale: 0.95", "max_scale: 0.9"},
      {"aspect_ratios: [1.0, 2.0, 0.5, 3.0, 0.3333]", "aspect_ratios: [1.0]"},
      {"weighted_smooth_l1 {}", "weighted_l2 {}"},
      {"num_hard_examples: 3000", "num_hard_examples: 100"},
      {"score_converter: SIGMOID", "score_converter: SOFTMAX"},
      {"normalize_loss_by_num_matches: true", "normalize_loss_by_num_matches: false"},
      {"kernel_size: 1", "kernel_size: 3"},
      {"min_depth: 16", "min_depth: 8"}};
  const size_t usual = converted(fixture("ssd_mobilenet_v1_coco.config")).not_carried.size();
  for (const auto& [from, to] : changes) {
    const Converted one = converted_with(from, to);
    EXPECT_EQ(one.not_carried.size(), usual + 1) << to;
    EXPECT_THAT(one.not_carried, Contains(HasSubstr("; Muster's model has "))) << to;
  }
}

TEST(ConvertPipeline, TakesOverLearningRatesOfEachKind) {
  const std::string whole = fixture("ssd_mobilenet_v1_coco.config");
  const size_t begin = whole.find("exponential_decay_learning_rate");
  const std::string exponential = whole.substr(begin, whole.find('}', begin) + 1 - begin);
  const Json constant =
      training_of(converted_with(exponential, "constant_learning_rate { learning_rate: 0.01 }"));
  EXPECT_EQ(constant["optimizer"]["learningRate"], 0.01);
  EXPECT_FALSE(constant.contains("learningRateSchedule"));
  const Json manual = training_of(converted_with(
      exponential,
      "manual_step_learning_rate { initial_learning_rate: 0.1 schedule { step: 100 learning_rate: "
      "0.01 } schedule { step: 200 learning_rate: 0.001 } }"));
  EXPECT_EQ(manual["learningRateSchedule"], Json::parse(R"({"piecewise": {"boundaries": [99, 199],
      "values": [0.1, 0.01, 0.001]}})"));
  const Converted cosine =
      converted_with(exponential,
                     "cosine_decay_learning_rate { learning_rate_base: 0.2 total_steps: 5000 "
                     "warmup_steps: 1000 }");
  EXPECT_EQ(training_of(cosine)["learningRateSchedule"],
            Json::parse(R"({"cosine": {"decaySteps": 4000}, "warmupSteps": 1000})"));
  EXPECT_THAT(cosine.not_carried, Contains(HasSubstr("rise from 0 instead")));
}

// TensorFlow's RMSProp accumulates as Muster's does, and a constant rate makes no difference.
TEST(ConvertPipeline, NamesTheMomentumThatDiffersUnderASchedule) {
  const auto names_it = Contains(HasSubstr("train_config.optimizer.momentum_optimizer: "));
  EXPECT_THAT(
      converted(fixture("ssd_mobilenet_v1_quantized_300x300_coco14_sync.config")).not_carried,
      names_it);
  EXPECT_THAT(converted(fixture("ssd_mobilenet_v1_coco.config")).not_carried, Not(names_it));
  std::string text = fixture("ssd_mobilenet_v1_quantized_300x300_coco14_sync.config");
  const std::string schedule = "cosine_decay_learning_rate {";
  const size_t begin = text.find(schedule), end = text.find('}', begin);
  ASSERT_NE(begin, std::string::npos);
  text.replace(begin, end - begin, "constant_learning_rate { learning_rate: 0.1 ");
  EXPECT_THAT(converted(text).not_carried, Not(names_it));
}

TEST(ConvertPipeline, KeepsAnAverageOnlyWhereAnEvaluationAsksForIt) {
  const std::string eval = "eval_config {", asks = "eval_config { use_moving_averages: true";
  for (const Converted& without :
       {converted(fixture("ssd_mobilenet_v1_coco.config")),
        converted_with(eval, "eval_config { use_moving_averages: false")}) {
    EXPECT_FALSE(training_of(without)["optimizer"].contains("ema"));
    EXPECT_THAT(without.not_carried, Not(Contains(HasSubstr("moving_average"))));
  }
  const Converted with = converted_with(eval, asks);
  EXPECT_EQ(training_of(with)["optimizer"]["ema"], Json::parse(R"({"decay": 0.9999})"));
  EXPECT_THAT(with.not_carried, Not(Contains(HasSubstr("moving_average"))));
  // The training keeps none.
  std::string text = fixture("ssd_mobilenet_v1_quantized_300x300_coco14_sync.config");
  const std::string given = "use_moving_averages: false";
  ASSERT_NE(text.find(given), std::string::npos);
  text.replace(text.find(given), given.size(), "use_moving_averages: true");
  EXPECT_FALSE(training_of(converted(text))["optimizer"].contains("ema"));
}

// The API's loss is one number for each anchor either way.
TEST(ConvertPipeline, LosesNothingByAnchorwiseOutput) {
  for (const auto& [loss, given] : {std::pair{"weighted_sigmoid {", "weighted_sigmoid {"},
                                    {"weighted_smooth_l1 {", "weighted_smooth_l1 {"},
                                    {"weighted_sigmoid {", "weighted_softmax {"}})
    EXPECT_THAT(converted_with(loss, std::string(given) + " anchorwise_output: true").not_carried,
                Not(Contains(HasSubstr("anchorwise_output"))));
}

TEST(ConvertPipeline, DescribesMustersModelAsItIs) {
  const compute::SsdLoss loss;
  pipeline::Ssd ssd;
  ssd.mutable_anchor_generator()->mutable_ssd_anchor_generator()->set_min_scale(
      loss.anchors.min_scale);
  auto& post = *ssd.mutable_post_processing()->mutable_batch_non_max_suppression();
  post.set_score_threshold(loss.suppression.score_threshold);
  post.set_iou_threshold(loss.suppression.iou_threshold);
  auto& miner = *ssd.mutable_loss()->mutable_hard_example_miner();
  miner.set_num_hard_examples(loss.mining.num_hard_examples);
  miner.set_iou_threshold(loss.mining.iou_threshold);
  miner.set_loss_type(pipeline::HardExampleMiner::CLASSIFICATION);
  miner.set_max_negatives_per_positive(static_cast<int>(loss.mining.max_negatives_per_positive));
  miner.set_min_negatives_per_image(loss.mining.min_negatives_per_image);
  auto& matcher = *ssd.mutable_matcher()->mutable_argmax_matcher();
  matcher.set_matched_threshold(loss.matcher.matched_threshold);
  matcher.set_force_match_for_each_row(loss.matcher.force_match_for_each_row);
  auto& anchors = *ssd.mutable_anchor_generator()->mutable_ssd_anchor_generator();
  for (const float ratio : loss.anchors.aspect_ratios) anchors.add_aspect_ratios(ratio);
  anchors.set_max_scale(loss.anchors.max_scale);
  anchors.set_num_layers(loss.anchors.num_layers);
  for (const Difference& one : model_differences(ssd))
    for (const char* part :
         {"anchor_generator", "batch_non_max_suppression", "hard_example_miner", "argmax_matcher"})
      EXPECT_THAT(one.path, Not(HasSubstr(part))) << one.given << " " << one.wanted;
}

TEST(JobName, IsMadeOfAFilesName) {
  EXPECT_EQ(job_name_of("ssd_mobilenet_v1_coco"), "ssd-mobilenet-v1-coco");
  EXPECT_EQ(job_name_of("ssd_mobilenet_v1_0.75_depth_quantized_300x300_pets_sync"),
            "ssd-mobilenet-v1-0-75-depth-quantized-30");
  EXPECT_EQ(job_name_of("300x300"), "job-300x300");
  EXPECT_EQ(job_name_of("__"), "job");
}

}  // namespace
}  // namespace muster::convert
