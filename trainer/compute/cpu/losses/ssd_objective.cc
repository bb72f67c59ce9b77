#include "trainer/compute/cpu/losses/ssd_objective.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "trainer/compute/models/ssd.h"
#include "trainer/detection/losses.h"
#include "trainer/detection/objects.h"
#include "trainer/detection/target_assigner.h"

namespace muster::compute::cpu {

using detection::ObjectList;

// The targets of an image's anchors.
struct SsdObjective::Targets {
  explicit Targets(size_t anchors)
      : matches(anchors),
        labels(anchors),
        class_weights(anchors),
        codes(anchors * 4),
        code_weights(anchors) {}

  std::vector<int32_t> matches, labels;
  std::vector<float> class_weights, codes, code_weights;
};

// Decides the targets of an image's anchors. A Teacher allocates its memory once.
class SsdObjective::Teacher {
 public:
  Teacher(const SsdLoss& loss, const std::vector<float>& anchors, size_t most_objects)
      : classes_(loss.classes),
        assigner_(anchors, {loss.matcher, loss.coder, 0, 1}),
        boxes_(most_objects * 4),
        labels_(most_objects),
        weights_(most_objects) {}

  // Returns the number of anchors that are matched with an object that counts.
  int64_t assign(std::span<const float> target, Targets& targets) {
    const ObjectList objects(target);
    size_t count = 0;
    for (size_t i = 0; i < objects.size(); ++i) {
      const detection::Object object = objects.at(i);
      if (object.label >= classes_) continue;
      detection::put_box(boxes_, count, object.box);
      labels_[count] = object.label + 1;
      weights_[count] = object.crowd ? 0.0f : object.weight;
      ++count;
    }
    assigner_.assign({std::span(boxes_).first(count * 4), std::span(labels_).first(count),
                      std::span(weights_).first(count)},
                     {targets.matches, targets.labels, targets.class_weights, targets.codes,
                      targets.code_weights});
    return std::ranges::count_if(targets.code_weights, [](float weight) { return weight > 0; });
  }

 private:
  const int64_t classes_;
  detection::TargetAssigner assigner_;
  std::vector<float> boxes_;
  std::vector<int32_t> labels_;
  std::vector<float> weights_;
};

// The memory that one thread needs for the loss of an image, allocated once.
class SsdObjective::Workspace {
 public:
  Workspace(const SsdLoss& loss, const std::vector<float>& anchors)
      : loss_(loss),
        anchors_(anchors),
        count_(anchors.size() / 4),
        miner_(loss.mining, count_),
        class_losses_(count_),
        code_losses_(count_),
        decoded_(count_ * 4),
        class_scales_(count_),
        code_scales_(count_) {}

  void loss(const float* y, float* dy, const Targets& targets, std::span<float> terms) {
    const size_t width = static_cast<size_t>(loss_.classes) + 1;
    const std::span<const float> codes(y, count_ * 4),
        logits(codes.data() + codes.size(), count_ * width);
    const std::span<float> code_gradients(dy, codes.size()),
        logit_gradients(dy + codes.size(), logits.size());
    loss_.classification.losses(logits, targets.labels, targets.class_weights, class_losses_);
    detection::smooth_l1_losses(codes, targets.codes, targets.code_weights, loss_.delta,
                                code_losses_);
    loss_.coder.decode(codes, anchors_, decoded_);
    std::ranges::fill(class_scales_, 0.0f);
    std::ranges::fill(code_scales_, 0.0f);
    double classification = 0, localization = 0;
    // Mining leaves NaN out, so a network that has diverged would have no loss without this loop.
    for (const float class_loss : class_losses_)
      if (std::isnan(class_loss)) classification = class_loss;
    for (const int32_t selected : miner_.select(decoded_, class_losses_, targets.matches)) {
      const auto anchor = static_cast<size_t>(selected);
      classification += class_losses_[anchor];
      localization += code_losses_[anchor];
      class_scales_[anchor] = loss_.classification_weight * targets.class_weights[anchor];
      code_scales_[anchor] = loss_.localization_weight * targets.code_weights[anchor];
    }
    loss_.classification.gradients(logits, targets.labels, class_scales_, logit_gradients);
    detection::smooth_l1_gradients(codes, targets.codes, code_scales_, loss_.delta, code_gradients);
    terms[0] = static_cast<float>(loss_.classification_weight * classification);
    terms[1] = static_cast<float>(loss_.localization_weight * localization);
  }

 private:
  const SsdLoss& loss_;
  const std::vector<float>& anchors_;
  const size_t count_;
  detection::HardExampleMiner miner_;
  std::vector<float> class_losses_, code_losses_, decoded_, class_scales_, code_scales_;
};

SsdObjective::SsdObjective(const SsdLoss& loss, const Graph& graph, int64_t max_rows, int threads)
    : loss_(loss),
      anchors_(anchors_of(loss_, graph)),
      floats_(static_cast<size_t>(graph.label_count)),
      teacher_(std::make_unique<Teacher>(loss_, anchors_,
                                         (floats_ - ObjectList::kHeader) / ObjectList::kFloats)) {
  for (int64_t row = 0; row < max_rows; ++row) targets_.emplace_back(anchors_.size() / 4);
  for (int i = 0; i < threads; ++i) workspaces_.emplace_back(loss_, anchors_);
}

SsdObjective::~SsdObjective() = default;

double SsdObjective::prepare(const Batch& batch) {
  int64_t matched = 0;
  for (size_t row = 0; row < static_cast<size_t>(batch.rows); ++row)
    matched += teacher_->assign({batch.targets[row], floats_}, targets_[row]);
  return static_cast<double>(matched);
}

void SsdObjective::row(size_t row, int thread, const float* output, float* gradient,
                       std::span<float> terms) const {
  workspaces_[static_cast<size_t>(thread)].loss(output, gradient, targets_[row], terms);
}

}  // namespace muster::compute::cpu
