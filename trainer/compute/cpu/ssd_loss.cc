#include <algorithm>
#include <array>
#include <cmath>

#include "trainer/compute/cpu/row_loss.h"
#include "trainer/compute/models/ssd.h"
#include "trainer/detection/losses.h"
#include "trainer/detection/objects.h"
#include "trainer/detection/target_assigner.h"

namespace muster::compute::cpu {
namespace {

using detection::ObjectList;

// The memory that one thread needs for the loss of an image. It is allocated once.
class Workspace {
 public:
  Workspace(const SsdLoss& loss, const std::vector<float>& anchors, size_t most_objects)
      : loss_(loss),
        anchors_(anchors),
        count_(anchors.size() / 4),
        assigner_(anchors, {loss.matcher, loss.coder, 0, 1}),
        miner_(loss.mining, count_),
        boxes_(most_objects * 4),
        labels_(most_objects),
        weights_(most_objects),
        matches_(count_),
        wanted_labels_(count_),
        class_weights_(count_),
        wanted_codes_(count_ * 4),
        code_weights_(count_),
        class_losses_(count_),
        code_losses_(count_),
        decoded_(count_ * 4),
        class_scales_(count_),
        code_scales_(count_) {}

  // Decides what the anchors are to be taught, and returns the number of those that are matched
  // with an object that counts.
  int64_t assign(std::span<const float> target) {
    const ObjectList objects(target);
    size_t count = 0;
    for (size_t i = 0; i < objects.size(); ++i) {
      const detection::Object object = objects.at(i);
      if (object.label >= loss_.classes) continue;
      detection::put_box(boxes_, count, object.box);
      labels_[count] = object.label + 1;
      weights_[count] = object.crowd ? 0.0f : object.weight;
      ++count;
    }
    assigner_.assign({std::span(boxes_).first(count * 4), std::span(labels_).first(count),
                      std::span(weights_).first(count)},
                     {matches_, wanted_labels_, class_weights_, wanted_codes_, code_weights_});
    return std::ranges::count_if(code_weights_, [](float weight) { return weight > 0; });
  }

  float loss(const LossRow& row) {
    const size_t width = static_cast<size_t>(loss_.classes) + 1;
    const std::span<const float> codes(row.y, count_ * 4),
        logits(codes.data() + codes.size(), count_ * width);
    const std::span<float> code_gradients(row.dy, codes.size()),
        logit_gradients(row.dy + codes.size(), logits.size());
    detection::sigmoid_losses(logits, wanted_labels_, class_weights_, class_losses_);
    detection::smooth_l1_losses(codes, wanted_codes_, code_weights_, loss_.delta, code_losses_);
    loss_.coder.decode(codes, anchors_, decoded_);
    std::ranges::fill(class_scales_, 0.0f);
    std::ranges::fill(code_scales_, 0.0f);
    double classification = 0, localization = 0;
    // Mining leaves NaN out: without this, a network that has diverged would have no loss.
    for (const float class_loss : class_losses_)
      if (std::isnan(class_loss)) classification = class_loss;
    for (const int32_t selected : miner_.select(decoded_, class_losses_, matches_)) {
      const auto anchor = static_cast<size_t>(selected);
      classification += class_losses_[anchor];
      localization += code_losses_[anchor];
      class_scales_[anchor] = loss_.classification_weight * class_weights_[anchor];
      code_scales_[anchor] = loss_.localization_weight * code_weights_[anchor];
    }
    detection::sigmoid_gradients(logits, wanted_labels_, class_scales_, logit_gradients);
    detection::smooth_l1_gradients(codes, wanted_codes_, code_scales_, loss_.delta, code_gradients);
    row.terms[0] = static_cast<float>(loss_.classification_weight * classification);
    row.terms[1] = static_cast<float>(loss_.localization_weight * localization);
    return row.terms[0] + row.terms[1];
  }

 private:
  const SsdLoss& loss_;
  const std::vector<float>& anchors_;
  const size_t count_;
  detection::TargetAssigner assigner_;
  detection::HardExampleMiner miner_;
  std::vector<float> boxes_;
  std::vector<int32_t> labels_;
  std::vector<float> weights_;
  std::vector<int32_t> matches_, wanted_labels_;
  std::vector<float> class_weights_, wanted_codes_, code_weights_;
  std::vector<float> class_losses_, code_losses_, decoded_, class_scales_, code_scales_;
};

class SsdLossOperation : public RowLoss {
 public:
  SsdLossOperation(const SsdLoss& loss, Context& context)
      : RowLoss(context, "ssd loss", 2),
        loss_(loss),
        anchors_(anchors_of(loss_, context.graph)),
        floats_(static_cast<size_t>(context.graph.label_count)) {
    const size_t most = (floats_ - ObjectList::kHeader) / ObjectList::kFloats;
    for (int i = 0; i < context.threads; ++i) workspaces_.emplace_back(loss_, anchors_, most);
  }

  double weight(const Batch& batch) const override {
    int64_t matched = 0;
    for (size_t row = 0; row < static_cast<size_t>(batch.rows); ++row)
      matched += workspaces_[0].assign(target(batch, row));
    return static_cast<double>(matched);
  }

 private:
  std::span<const float> target(const Batch& batch, size_t row) const {
    return {batch.targets[row], floats_};
  }

  float one(const LossRow& row) const override {
    Workspace& workspace = workspaces_[static_cast<size_t>(row.thread)];
    workspace.assign(target(row.batch, row.index));
    return workspace.loss(row);
  }

  const SsdLoss loss_;
  const std::vector<float> anchors_;
  const size_t floats_;                        // of a row's target
  mutable std::vector<Workspace> workspaces_;  // of each thread
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const SsdLoss& loss, Context& context) {
  return std::make_unique<SsdLossOperation>(loss, context);
}

}  // namespace muster::compute::cpu
