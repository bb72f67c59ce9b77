#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/compute/device.h"
#include "trainer/compute/loss_sums.h"
#include "trainer/compute/memory.h"
#include "trainer/compute/models/model_spec.h"
#include "trainer/compute/optimizer.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::compute {

enum class ElementType { uint8, float32 };
inline size_t bytes_of(ElementType type) {
  return type == ElementType::uint8 ? 1 : sizeof(float);
}

// The rows of one (micro)batch, by pointer: nothing is gathered before the device does it. Value of
// a feature: element * scale + offset.
struct Batch {
  int64_t rows = 0;  // 0 is legal: gradients and sums are zero
  ElementType type = ElementType::float32;
  std::span<const void* const> features;  // rows pointers, each to one sample's elements
  float scale = 1.0f;
  float offset = 0.0f;
  std::span<const int32_t> labels;        // for a loss that takes classes: rows classes
  std::span<const float* const> targets;  // for one that takes floats: rows pointers to label_count
  std::span<const uint64_t> positions;    // rows sample positions in the epoch's permutation
  uint64_t epoch = 0;
};

struct EngineOptions {
  Device device;
  int64_t max_rows = 32;
  int threads = 0;        // 0: cpu_budget() capped by what the shapes are worth; then fixed
  uint64_t seed = 1;      // of dropout
  bool exclusive = true;  // nobody else wants these cores: team members spin between steps
};

// A model on a device: its static graph, its arena, its flat buffers, which may be where the host
// cannot address them. Built once; a step allocates nothing. Not thread-safe: one caller.
class Engine {
 public:
  // Throws Invalid, naming the layer, where shapes do not fit.
  static std::unique_ptr<Engine> create(const ModelSpec& model, const EngineOptions& options);
  virtual ~Engine() = default;

  virtual const ParameterLayout& layout() const = 0;
  virtual Device device() const = 0;
  virtual int threads() const = 0;
  // "avx512/2" and so on: what decides the bits of a result besides the build.
  virtual std::string instruction_set() const = 0;

  // The flat buffers, layout().size() floats each.
  virtual Memory& parameters() = 0;
  virtual Memory& gradients() = 0;
  // Another one on this device, all zeros.
  virtual std::unique_ptr<Memory> allocate() const = 0;

  // Other memory for the flat buffers, of layout().size() floats each: memory of this device, which
  // on the CPU must lie on cache lines, as memory from Floats does. Its content counts from here
  // on, and it must live as long as it is used; a view need not outlive the call. No gradients:
  // the engine's own. Throws Invalid for memory of another size or device.
  virtual void use(Memory& parameters, Memory* gradients) = 0;
  // Our own memory again; the parameters are what they were in the other.
  virtual void use_own() = 0;

  // Told during a backward pass that gradients [0, end) are what they will be, by any of the
  // device's threads, which waits meanwhile: it must be quick and not throw. A smaller `end` may be
  // told after a larger one; that all of them are is said by compute_gradients()'s return.
  using OnComplete = std::function<void(size_t end)>;

  // Forward and backward: overwrites gradients() with sums over the batch's rows, without dividing.
  // The state segment of gradients() receives rows x the batch's statistics.
  virtual LossSums compute_gradients(const Batch& batch, const OnComplete& on_complete) = 0;
  LossSums compute_gradients(const Batch& batch) { return compute_gradients(batch, nullptr); }

  // compute_gradients, then the optimizer over everything, in one go on the device's threads;
  // the batch's own sums divide, not those that `update` names. `slots` are as Optimizer names
  // them, from allocate(). What gradients() holds afterwards is not defined: a gradient is used up
  // while it is in cache. 0 rows: nothing is updated.
  virtual LossSums train(const Batch& batch, const Optimizer& optimizer,
                         const UpdateArguments& update, std::span<Memory* const> slots) = 0;

  // Forward only, no dropout, moving statistics. `outputs` receives what the loss meets, [rows,
  // output_count()]: logits, where the loss takes their softmax. Empty: nobody wants it.
  virtual LossSums evaluate(const Batch& batch, std::span<float> outputs) = 0;
  LossSums evaluate(const Batch& batch) { return evaluate(batch, {}); }
  // Outputs [rows, outputs] after the last activation; softmax probabilities where the loss
  // takes the softmax.
  virtual void predict(const Batch& batch, std::span<float> outputs) = 0;
  virtual int64_t output_count() const = 0;
};

// Fills `parameters` (layout.size() floats) as the initializers say: a function of (seed, tensor
// name, element) only.
void initialize_parameters(const ParameterLayout& layout, uint64_t seed,
                           std::span<float> parameters);

}  // namespace muster::compute
