#pragma once

#include <array>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/compute/cuda/cuda_memory.h"
#include "trainer/compute/cuda/feature_input.h"
#include "trainer/compute/cuda/operation.h"
#include "trainer/compute/cuda/tensor_update.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/loss.h"

namespace muster::compute::cuda {

// The engine on a GPU; see compute/engine.h. The GPU work of a step is recorded at the first batch
// of each form, and replayed for later batches of that form.
class CudaEngine : public Engine {
 public:
  struct Limits {
    // The most numbers in the patches of the samples that a convolution handles at once.
    int64_t patches = int64_t{64} << 20;
    // The smallest number of complete gradients that compute_gradients() reports at once.
    size_t stretch = size_t{1} << 20;
  };
  CudaEngine(Graph graph, const EngineOptions& options, std::unique_ptr<Gpu> gpu)
      : CudaEngine(std::move(graph), options, std::move(gpu), Limits()) {}
  CudaEngine(Graph graph, const EngineOptions& options, std::unique_ptr<Gpu> gpu,
             const Limits& limits);

  const ParameterLayout& layout() const override { return graph_.layout; }
  int threads() const override { return 1; }
  std::string instruction_set() const override { return gpu_->name(); }
  Device device() const override { return device_; }
  Memory& parameters() override { return *parameters_; }
  Memory& gradients() override { return *gradients_; }
  Gpu* gpu_or_null() const override { return gpu_.get(); }
  std::unique_ptr<Memory> allocate() const override;
  void use(Memory& parameters, Memory* gradients) override;
  void use_own() override;
  using Engine::compute_gradients;
  LossSums compute_gradients(const Batch& batch, const OnComplete& on_complete) override;
  LossSums train(const Batch& batch, const Optimizer& optimizer, const UpdateArguments& update,
                 std::span<Memory* const> slots) override;
  bool trains_ahead(const Optimizer& optimizer) const override {
    return !optimizer.needs_whole_tensors() && !loss_->waits();
  }
  void begin_training(const Batch& batch, const Optimizer& optimizer, const UpdateArguments& update,
                      std::span<Memory* const> slots) override;
  LossSums end_training() override;
  using Engine::evaluate;
  LossSums evaluate(const Batch& batch, std::span<float> outputs) override;
  void predict(const Batch& batch, std::span<float> outputs) override;
  int64_t output_count() const override { return graph_.outputs(); }
  std::shared_ptr<void> pin(std::span<const std::byte> memory) override {
    return pinned(*gpu_, memory);
  }
  std::shared_ptr<void> serve(std::span<const std::byte> memory, Content content) override {
    return input_.serve(memory, content);
  }
  void set_meanwhile(const std::function<void()>& function) override { meanwhile_ = function; }
  void prepare(const Batch& next) override { input_.prepare(next); }
  Gpu& gpu() const { return *gpu_; }

 private:
  // Says what a run does. A recording is valid for one kind, form of batch and set of buffers.
  // `stretches` also computes gradients, and reports each part of the gradients when it is
  // complete.
  enum class Kind { gradients, stretches, training, evaluation, prediction };
  static bool trains(Kind kind) { return kind != Kind::evaluation && kind != Kind::prediction; }
  struct Form {
    Kind kind;
    int turn;
    int64_t rows;
    FeatureSource source;
    float scale, offset;
    FlatBuffers buffers;
    bool operator==(const Form&) const = default;
  };
  // The work after which gradients [0, end) are complete.
  struct Stretch {
    std::unique_ptr<Recording> work;
    size_t end;
  };
  // A step that has been begun.
  struct Begun {
    int turn;
    int64_t rows;
    double weight;
    Completion done;  // the step's completion, if another step has been begun after it
    std::exception_ptr failure;
  };
  using Recordings = std::vector<std::pair<Form, std::vector<Stretch>>>;

  std::unique_ptr<Operation> make(const Node& node);
  void add_backward();
  CudaMemory& own_kind(Memory& memory) const;
  // Copies the batch to the memory that the GPU's next work reads. Returns the form of this work.
  Form stage(Kind kind, const Batch& batch, int turn = 0);
  char* staged(int turn) const { return staged_.data() + turn * places_.end; }
  FlatBuffers buffers_of(const Optimizer& optimizer, std::span<Memory* const> slots) const;
  void ask(const Form& form, const std::function<void(size_t end)>& told);
  const std::vector<Stretch>& recorded(const Form& form);
  void run(const Form& form, const OnComplete& on_complete = {});
  // Waits until the GPU no longer reads a batch's memory, and calls the function from
  // set_meanwhile(). Returns the error that the function has thrown, because the GPU still works
  // with this engine's memory.
  std::exception_ptr look_ahead();
  LossSums sums(int64_t rows, double weight, int turn = 0) const;
  void run_outputs(const Form& form, std::span<float> outputs);

  const Device device_;
  const Graph graph_;
  const std::unique_ptr<Gpu> gpu_;
  const int64_t max_rows_;
  const size_t least_stretch_;
  const LabelKind labels_;
  Context context_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::unique_ptr<LossOperation> loss_;
  Program forward_, backward_;
  CudaMemory own_parameters_, own_gradients_;
  CudaMemory* parameters_ = &own_parameters_;
  CudaMemory* gradients_ = &own_gradients_;
  TensorUpdate update_;
  // The offsets, in bytes, of the parts of a batch (without its features) in the memory below; the
  // epoch comes first.
  struct Places {
    int64_t positions, starts, labels, weights, targets, end;
  };
  const Places places_;
  HostArray<char> staged_;  // [2, places.end], of each turn
  GpuArray<char> batch_;
  std::optional<GpuArray<float>> probabilities_;  // if predictions are a softmax of the output
  HostArray<float> outputs_;
  FeatureInput input_;
  std::function<void()> meanwhile_;
  Recordings recordings_;
  std::deque<Begun> begun_;
};

}  // namespace muster::compute::cuda
