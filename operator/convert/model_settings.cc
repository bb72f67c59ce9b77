#include "operator/convert/model_settings.h"

#include <google/protobuf/text_format.h>

#include <optional>

#include "common/error.h"
#include "operator/convert/learning_rate.h"

namespace muster::convert {

namespace {

constexpr const char* kType = "ssd_mobilenet_v1";
constexpr float kMostLogitScale = 1000000;  // limit of the field logitScale

// Muster's ssd-mobilenet-v1, as a configuration of the API: see trainer/compute/models/ssd.h, and
// SsdLoss in model_spec.h there.
constexpr const char* kMusterModel = R"(
  feature_extractor {
    type: 'ssd_mobilenet_v1'
    conv_hyperparams {
      activation: RELU_6
      initializer { truncated_normal_initializer { stddev: 0.03 } }
      batch_norm { scale: true }
    }
  }
  box_coder { faster_rcnn_box_coder {} }
  matcher { argmax_matcher { force_match_for_each_row: true } }
  similarity_calculator { iou_similarity {} }
  box_predictor {
    convolutional_box_predictor {
      use_dropout: false
      conv_hyperparams { initializer { truncated_normal_initializer { stddev: 0.03 } } }
    }
  }
  anchor_generator { ssd_anchor_generator { aspect_ratios: [1.0, 2.0, 0.5, 3.0, 0.3333] } }
  loss {
    classification_loss { weighted_sigmoid {} }
    localization_loss { weighted_smooth_l1 {} }
    hard_example_miner {
      num_hard_examples: 3000
      iou_threshold: 0.99
      loss_type: CLASSIFICATION
      max_negatives_per_positive: 3
    }
  }
  post_processing {
    batch_non_max_suppression { score_threshold: 1e-8 }
    score_converter: SIGMOID
  }
)";

pipeline::Ssd muster_model() {
  pipeline::Ssd model;
  if (!google::protobuf::TextFormat::ParseFromString(kMusterModel, &model))
    throw Invalid("the description of ssd-mobilenet-v1 is no message");
  return model;
}

const pipeline::BatchNorm& normalization_of(const pipeline::Ssd& model) {
  return model.feature_extractor().conv_hyperparams().batch_norm();
}

// Returns the scale of the logits if the loss is a softmax; nothing for another loss, or for a
// scale that Muster does not accept.
std::optional<float> softmax_scale(const pipeline::Ssd& model) {
  const pipeline::ClassificationLoss& loss = model.loss().classification_loss();
  const float scale = loss.weighted_softmax().logit_scale();
  if (!loss.has_weighted_softmax() || !(scale > 0 && scale <= kMostLogitScale)) return std::nullopt;
  return scale;
}

}  // namespace

void require_model(const pipeline::Pipeline& pipeline) {
  const std::string expected =
      std::string("expected a model ssd with the feature extractor ") + kType;
  if (!pipeline.has_model()) throw Invalid("the pipeline: " + expected + ", found no model");
  if (!pipeline.model().has_ssd()) {
    const pipeline::Model& model = pipeline.model();
    const auto* choice = model.GetDescriptor()->FindOneofByName("model");
    const auto* field = model.GetReflection()->GetOneofFieldDescriptor(model, choice);
    throw Invalid("model: " + expected + ", found " +
                  (field == nullptr ? "another" : field->name() + ", which Muster does not have"));
  }
  const pipeline::Ssd& ssd = pipeline.model().ssd();
  const std::string& type = ssd.feature_extractor().type();
  if (type != kType)
    throw Invalid("model.ssd.feature_extractor.type: " + expected + ", found \"" + type +
                  "\", which Muster does not have");
  const auto& resizer = ssd.image_resizer();
  const auto& size = resizer.fixed_shape_resizer();
  constexpr int kMost = 2048;
  const bool fits = resizer.has_fixed_shape_resizer() && size.height() >= 1 &&
                    size.height() <= kMost && size.width() >= 1 && size.width() <= kMost;
  if (!fits)
    throw Invalid(
        "model.ssd.image_resizer: expected fixed_shape_resizer with a height and width of "
        "1 to 2048, found {" +
        resizer.ShortDebugString() + "}");
  if (ssd.num_classes() < 1)
    throw Invalid("model.ssd.num_classes: expected 1 or more, found " +
                  std::to_string(ssd.num_classes()));
  const float depth = ssd.feature_extractor().depth_multiplier();
  if (!(depth > 0 && depth <= 4))
    throw Invalid(
        "model.ssd.feature_extractor.depth_multiplier: expected a number above 0 and at "
        "most 4, found " +
        shown(depth));
}

Json model_of(const pipeline::Ssd& given) {
  Json model = {{"name", "ssd-mobilenet-v1"}, {"classes", given.num_classes()}};
  const pipeline::FeatureExtractor& features = given.feature_extractor();
  if (features.depth_multiplier() != 1.0f)
    model["depthMultiplier"] = as_written(features.depth_multiplier());
  const float decay = normalization_of(given).decay();
  if (decay >= 0 && decay < 1) model["normalizationMomentum"] = as_written(decay);
  if (const auto scale = softmax_scale(given)) {
    model["classificationLoss"] = "softmax";
    if (*scale != 1.0f) model["logitScale"] = as_written(*scale);
  }
  return model;
}

std::vector<Difference> model_differences(const pipeline::Ssd& given) {
  pipeline::Ssd wanted = muster_model();
  wanted.set_num_classes(given.num_classes());
  *wanted.mutable_image_resizer() = given.image_resizer();
  pipeline::FeatureExtractor& features = *wanted.mutable_feature_extractor();
  features.set_depth_multiplier(given.feature_extractor().depth_multiplier());
  pipeline::Hyperparams& convolutions = *features.mutable_conv_hyperparams();
  const float decay = normalization_of(given).decay();
  if (decay >= 0 && decay < 1) convolutions.mutable_batch_norm()->set_decay(decay);
  // The optimizer has one L2 for all kernels: that of the feature extractor.
  const auto& regularizer = given.feature_extractor().conv_hyperparams().regularizer();
  auto& heads = *wanted.mutable_box_predictor()->mutable_convolutional_box_predictor();
  if (regularizer.has_l2_regularizer()) {
    *convolutions.mutable_regularizer() = regularizer;
    *heads.mutable_conv_hyperparams()->mutable_regularizer() = regularizer;
  }
  if (const auto scale = softmax_scale(given)) {
    wanted.mutable_loss()
        ->mutable_classification_loss()
        ->mutable_weighted_softmax()
        ->set_logit_scale(*scale);
    wanted.mutable_post_processing()->set_score_converter(pipeline::PostProcessing::SOFTMAX);
    wanted.mutable_post_processing()->set_logit_scale(*scale);
  }
  // A head is one convolution without normalization and activation, whatever this message says.
  pipeline::Ssd compared = given;
  if (compared.box_predictor().has_convolutional_box_predictor()) {
    auto& its = *compared.mutable_box_predictor()->mutable_convolutional_box_predictor();
    if (!its.use_dropout()) its.clear_dropout_keep_probability();
    its.mutable_conv_hyperparams()->clear_batch_norm();
    its.mutable_conv_hyperparams()->clear_activation();
  }
  return differences("model.ssd", compared, wanted);
}

}  // namespace muster::convert
