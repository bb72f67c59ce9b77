#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/compute/aligned.h"
#include "trainer/compute/cpu/program/operation.h"
#include "trainer/compute/cpu/whole_update.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/graph.h"

namespace muster::compute::cpu {

// The engine on the CPU; see engine.h. Its additional functions are for benchmarks and tests.
class CpuEngine : public Engine {
 public:
  CpuEngine(Graph graph, const EngineOptions& options, const Kernels& kernels);

  const ParameterLayout& layout() const override { return graph_.layout; }
  int threads() const override { return team_.count(); }
  std::string instruction_set() const override;
  Device device() const override { return device_; }
  Memory& parameters() override { return parameters_; }
  Memory& gradients() override { return gradients_; }
  std::unique_ptr<Memory> allocate() const override;
  void use(Memory& parameters, Memory* gradients) override;
  void use_own() override;
  using Engine::compute_gradients;
  LossSums compute_gradients(const Batch& batch, const OnComplete& on_complete) override;
  LossSums train(const Batch& batch, const Optimizer& optimizer, const UpdateArguments& update,
                 std::span<Memory* const> slots) override;
  using Engine::evaluate;
  LossSums evaluate(const Batch& batch, std::span<float> outputs) override;
  void predict(const Batch& batch, std::span<float> outputs) override;
  int64_t output_count() const override;

  // The time stamp ticks that the slowest thread spent in each phase of the last training step;
  // measured while profiling is on.
  struct PhaseTime {
    std::string name;
    uint64_t ticks = 0;
  };
  void profile(bool on) { profiling_ = on; }
  std::vector<PhaseTime> phase_times() const;
  // Returns the bytes of the engine's values, gradients and threads, without parameters.
  int64_t arena_bytes() const { return arena_.size(); }
  // Lets the caller choose between dense and sparse products; both give the same bits.
  enum class Sparsity { measured, always, never };
  void set_sparsity(Sparsity sparsity);

 private:
  void add_backward();
  std::unique_ptr<Operation> make(const Node& node);
  void add_values();
  void add_normalized();
  Temporary gradient_of(int value, int64_t bytes) const;
  int place_of(const Node& node) const;
  int64_t widest_share(int64_t width) const;  // columns of the thread with the most columns
  std::vector<bool> in_planes() const;        // for each value, whether it lies in planes
  void add_sparse(ValueBlocks& value);
  LossSums run_gradients(const Batch& batch, const OnComplete& on_complete);
  LossSums run_training(Step step);
  LossSums sums(const Batch& batch) const;
  void copy_outputs(int64_t rows, OutputFunction function, std::span<float> outputs);
  LossSums train_whole(const Batch& batch, const Optimizer& optimizer,
                       const UpdateArguments& arguments, std::span<Memory* const> slots);
  void run(const Program& program, const Step& step);
  void choose_sparsity(int64_t rows);

  const Device device_;
  const Precision precision_;
  Graph graph_;
  Arena arena_;
  Context context_;
  std::vector<std::unique_ptr<Operation>> operations_;  // the first one is the input
  std::unique_ptr<LossOperation> loss_;
  double weight_ = 0;  // weight of the batch that the loss is prepared for
  Program training_, evaluation_, prediction_;
  // For each phase of training_, the number of threads that have finished it.
  std::vector<std::atomic<int>> arrivals_;
  Floats own_parameters_, own_gradients_;
  HostMemory parameters_, gradients_;  // views of the engine's memory, or of others' memory
  std::vector<UpdateRule> rules_;
  std::optional<WholeUpdate> whole_update_;  // made when an optimizer first needs it
  Sparsity sparsity_ = Sparsity::measured;
  bool profiling_ = false;
  std::vector<uint64_t> ticks_;  // [thread][phase]
  Step step_;
  const Program* program_ = nullptr;
  std::function<void(TeamThread)> work_;
  Team team_;
};

}  // namespace muster::compute::cpu
