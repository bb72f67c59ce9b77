#include "trainer/compute/cuda/losses/row_loss.h"
#include "trainer/compute/models/ssd.h"

namespace muster::compute::cuda {
namespace {

constexpr int64_t kTerms = 2;  // classification, localization

class SsdLossOperation : public RowLoss {
 public:
  SsdLossOperation(const SsdLoss& loss, Context& context)
      : SsdLossOperation(loss, context, anchors_of(loss, context.graph)) {}

  bool waits() const override { return true; }
  // Matches the anchors, which depends on the batch's targets alone.
  double prepare(const Batch& batch) override {
    Gpu& gpu = context().gpu;
    const int64_t floats = context().graph.label_count;
    gpu.upload(context().step.targets, context().step.staged_targets,
               static_cast<size_t>(batch.rows * floats) * sizeof(float));
    gpu.launch(MatchAnchors{batch.rows, floats, context().step.targets, loss_.classes,
                            loss_.matcher, loss_.coder, anchors_, counts_.data()});
    gpu.download(host_counts_.data(), counts_.data(),
                 static_cast<size_t>(batch.rows) * sizeof(float));
    gpu.wait();
    double matched = 0;
    for (int64_t row = 0; row < batch.rows; ++row) matched += host_counts_.data()[row];
    return matched;
  }

 private:
  SsdLossOperation(const SsdLoss& loss, Context& context, const std::vector<float>& boxes)
      : RowLoss(context, kTerms),
        loss_(loss),
        count_(static_cast<int64_t>(boxes.size() / 4)),
        boxes_(context.gpu, count_ * 4),
        integers_(context.gpu, context.max_rows * count_ * kIntegers),
        floats_(context.gpu, context.max_rows * count_ * kFloats),
        counts_(context.gpu, context.max_rows),
        host_counts_(context.gpu, context.max_rows),
        anchors_(arrays()) {
    context.gpu.upload(boxes_.data(), boxes.data(), boxes.size() * sizeof(float));
    context.gpu.wait();
  }

  void launch(int64_t rows) override {
    Gpu& gpu = context().gpu;
    const int64_t logits = loss_.classes + 1;
    const float* y = output().values();
    const Rivals rivals{loss_.mining.iou_threshold, anchors_};
    gpu.launch(
        AnchorLosses{rows, logits, y, loss_.classification, loss_.coder, loss_.delta, anchors_});
    gpu.launch(RankAnchors{rows, rivals});
    gpu.launch(MineAnchors{rows, loss_.mining, rivals, loss_.classification_weight,
                           loss_.localization_weight, losses(), term(0), term(1)});
    gpu.launch(AnchorGradients{rows, logits, y, loss_.classification, loss_.delta, anchors_,
                               output().gradients()});
  }

  static constexpr int64_t kIntegers = 7, kFloats = 16;  // for each anchor of a row

  Anchors arrays() {
    const int64_t size = context().max_rows * count_;
    int32_t* integers = integers_.data();
    float* floats = floats_.data();
    const auto next = [size](auto*& from, int64_t each = 1) {
      return std::exchange(from, from + size * each);
    };
    Anchors anchors{};
    anchors.count = count_;
    anchors.boxes = boxes_.data();
    for (int32_t** to : {&anchors.matches, &anchors.claimed_by, &anchors.labels, &anchors.ranks,
                         &anchors.by_rank, &anchors.states, &anchors.decisions})
      *to = next(integers);
    for (float** to : {&anchors.similarities, &anchors.class_weights, &anchors.code_weights,
                       &anchors.class_losses, &anchors.code_losses, &anchors.areas,
                       &anchors.class_scales, &anchors.code_scales})
      *to = next(floats);
    anchors.codes = next(floats, 4);
    anchors.boxes_found = next(floats, 4);
    return anchors;
  }

  const SsdLoss loss_;
  const int64_t count_;  // number of anchors
  GpuArray<float> boxes_;
  GpuArray<int32_t> integers_;
  GpuArray<float> floats_;
  GpuArray<float> counts_;
  HostArray<float> host_counts_;
  const Anchors anchors_;
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const SsdLoss& loss, Context& context) {
  return std::make_unique<SsdLossOperation>(loss, context);
}

}  // namespace muster::compute::cuda
