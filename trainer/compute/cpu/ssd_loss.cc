#include <algorithm>
#include <array>

#include "trainer/compute/cpu/row_loss.h"
#include "trainer/compute/models/ssd.h"
#include "trainer/detection/losses.h"
#include "trainer/detection/objects.h"
#include "trainer/detection/target_assigner.h"

namespace muster::compute::cpu {
namespace {

using detection::ObjectList;

// The targets of an image's anchors.
struct Targets {
  explicit Targets(size_t anchors)
      : matches(anchors),
        labels(anchors),
        class_weights(anchors),
        codes(anchors * 4),
        code_weights(anchors) {}

  std::vector<int32_t> matches, labels;
  std::vector<float> class_weights, codes, code_weights;
};

// Decides what the anchors of an image are to be taught. It allocates its memory once.
class Teacher {
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

// The memory that one thread needs for the loss of an image. It is allocated once.
class Workspace {
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

  float loss(const LossRow& row, const Targets& targets) {
    const size_t width = static_cast<size_t>(loss_.classes) + 1;
    const std::span<const float> codes(row.y, count_ * 4),
        logits(codes.data() + codes.size(), count_ * width);
    const std::span<float> code_gradients(row.dy, codes.size()),
        logit_gradients(row.dy + codes.size(), logits.size());
    detection::sigmoid_losses(logits, targets.labels, targets.class_weights, class_losses_);
    detection::smooth_l1_losses(codes, targets.codes, targets.code_weights, loss_.delta,
                                code_losses_);
    loss_.coder.decode(codes, anchors_, decoded_);
    std::ranges::fill(class_scales_, 0.0f);
    std::ranges::fill(code_scales_, 0.0f);
    double classification = 0, localization = 0;
    for (const int32_t selected : miner_.select(decoded_, class_losses_, targets.matches)) {
      const auto anchor = static_cast<size_t>(selected);
      classification += class_losses_[anchor];
      localization += code_losses_[anchor];
      class_scales_[anchor] = loss_.classification_weight * targets.class_weights[anchor];
      code_scales_[anchor] = loss_.localization_weight * targets.code_weights[anchor];
    }
    detection::sigmoid_gradients(logits, targets.labels, class_scales_, logit_gradients);
    detection::smooth_l1_gradients(codes, targets.codes, code_scales_, loss_.delta, code_gradients);
    row.terms[0] = static_cast<float>(loss_.classification_weight * classification);
    row.terms[1] = static_cast<float>(loss_.localization_weight * localization);
    return row.terms[0] + row.terms[1];
  }

 private:
  const SsdLoss& loss_;
  const std::vector<float>& anchors_;
  const size_t count_;
  detection::HardExampleMiner miner_;
  std::vector<float> class_losses_, code_losses_, decoded_, class_scales_, code_scales_;
};

class SsdLossOperation : public RowLoss {
 public:
  SsdLossOperation(const SsdLoss& loss, Context& context)
      : RowLoss(context, "ssd loss", 2),
        loss_(loss),
        anchors_(anchors_of(loss_, context.graph)),
        floats_(static_cast<size_t>(context.graph.label_count)),
        teacher_(loss_, anchors_, (floats_ - ObjectList::kHeader) / ObjectList::kFloats) {
    for (int64_t row = 0; row < context.max_rows; ++row) targets_.emplace_back(anchors_.size() / 4);
    for (int i = 0; i < context.threads; ++i) workspaces_.emplace_back(loss_, anchors_);
  }

  double prepare(const Batch& batch) override {
    int64_t matched = 0;
    for (size_t row = 0; row < static_cast<size_t>(batch.rows); ++row)
      matched += teacher_.assign({batch.targets[row], floats_}, targets_[row]);
    return static_cast<double>(matched);
  }

 private:
  float one(const LossRow& row) const override {
    return workspaces_[static_cast<size_t>(row.thread)].loss(row, targets_[row.index]);
  }

  const SsdLoss loss_;
  const std::vector<float> anchors_;
  const size_t floats_;  // of a row's target
  Teacher teacher_;
  std::vector<Targets> targets_;               // of each row
  mutable std::vector<Workspace> workspaces_;  // of each thread
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const SsdLoss& loss, Context& context) {
  return std::make_unique<SsdLossOperation>(loss, context);
}

}  // namespace muster::compute::cpu
