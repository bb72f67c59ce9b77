#include "trainer/compute/cpu/losses/row_loss.h"
#include "trainer/compute/cpu/losses/ssd_objective.h"

namespace muster::compute::cpu {
namespace {

class SsdLossOperation : public RowLoss {
 public:
  SsdLossOperation(const SsdLoss& loss, Context& context)
      : RowLoss(context, "ssd loss", SsdObjective::kTerms),
        objective_(loss, context.graph, context.max_rows, context.threads) {}

  double prepare(const Batch& batch) override { return objective_.prepare(batch); }

 private:
  float one(const LossRow& row) const override {
    objective_.row(row.index, row.thread, row.y, row.dy, row.terms);
    return row.terms[0] + row.terms[1];
  }

  SsdObjective objective_;
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const SsdLoss& loss, Context& context) {
  return std::make_unique<SsdLossOperation>(loss, context);
}

}  // namespace muster::compute::cpu
