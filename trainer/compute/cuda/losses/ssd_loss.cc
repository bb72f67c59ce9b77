#include "common/cpu_budget.h"
#include "trainer/compute/cuda/operation.h"
#include "trainer/compute/ssd_objective.h"
#include "trainer/host/team.h"

namespace muster::compute::cuda {
namespace {

using host::Team;
using host::TeamThread;

// Computed on the host: the output is copied there, and its gradient back.
class SsdLossOperation : public LossOperation {
 public:
  SsdLossOperation(const SsdLoss& loss, Context& context)
      : context_(context),
        out_(context.value(context.graph.output)),
        team_(cpu_budget(), false),
        objective_(loss, context.graph, context.max_rows, team_.count()),
        output_(context.gpu, context.max_rows * out_.width),
        gradient_(context.gpu, context.max_rows * out_.width),
        terms_(static_cast<size_t>(context.max_rows * SsdObjective::kTerms)) {
    Context::claim_gradient(out_);
  }

  double prepare(const Batch& batch) override { return objective_.prepare(batch); }
  bool waits() const override { return true; }

  void run(const Step& step) override {
    const auto bytes = static_cast<size_t>(step.rows * out_.width) * sizeof(float);
    context_.gpu.download(output_.data(), out_.values(), bytes);
    context_.gpu.wait();
    team_.run([&](TeamThread thread) {
      for (int64_t row = thread.begin(step.rows); row < thread.end(step.rows); ++row)
        objective_.row(static_cast<size_t>(row), thread.index, output_.data() + row * out_.width,
                       gradient_.data() + row * out_.width, terms(row));
    });
    if (step.training) context_.gpu.upload(out_.gradients(), gradient_.data(), bytes);
  }

  LossSums sums(int64_t rows) const override {
    LossSums sums;
    for (int64_t row = 0; row < rows; ++row) {
      const std::span<float> of_row = terms(row);
      sums.loss += of_row[0] + of_row[1];
      for (size_t i = 0; i < of_row.size(); ++i) sums.terms[i] += of_row[i];
    }
    return sums;
  }

 private:
  std::span<float> terms(int64_t row) const {
    constexpr size_t kTerms{SsdObjective::kTerms};
    return std::span(terms_).subspan(static_cast<size_t>(row) * kTerms, kTerms);
  }

  Context& context_;
  ValueMemory& out_;
  Team team_;
  SsdObjective objective_;
  HostArray<float> output_, gradient_;
  mutable std::vector<float> terms_;  // [rows, kTerms]
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const SsdLoss& loss, Context& context) {
  return std::make_unique<SsdLossOperation>(loss, context);
}

}  // namespace muster::compute::cuda
