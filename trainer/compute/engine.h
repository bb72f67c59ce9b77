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
#include "trainer/compute/precision.h"

namespace muster::compute {

namespace cuda {
class Gpu;
}

enum class ElementType { uint8, float32 };
inline size_t bytes_of(ElementType type) {
  return type == ElementType::uint8 ? 1 : sizeof(float);
}

// The rows of one (micro)batch, by pointer: the device gathers them, nobody before it. The value of
// a feature is element * scale + offset.
struct Batch {
  int64_t rows = 0;  // 0 is legal: gradients and sums are zero
  ElementType type = ElementType::float32;
  std::span<const void* const> features;  // rows pointers, each to one sample's elements
  float scale = 1.0f;
  float offset = 0.0f;
  std::span<const int32_t> labels;  // one class for each row, if the loss takes classes
  // One pointer to label_count floats for each row, if the loss takes floats.
  std::span<const float* const> targets;
  // The factor of each row's loss and gradient, which are divided by the number of rows all the
  // same; empty: 1. Terms of a loss have no such factor, and losses of objects ignore it.
  std::span<const float> weights;
  // For evaluations that rank: the number of each row's group; else empty.
  std::span<const int32_t> groups;
  // For each row, the sample's position in the epoch's permutation.
  std::span<const uint64_t> positions;
  uint64_t epoch = 0;
};

// Whether memory keeps its content as long as an engine reads it.
enum class Content { constant, changing };

struct EngineOptions {
  Device device;
  Precision precision = Precision::float32;
  int64_t max_rows = 32;
  int threads = 0;        // 0: cpu_budget(), but no more than the shapes can use; then fixed
  uint64_t seed = 1;      // the seed of dropout
  bool exclusive = true;  // nobody else uses these cores: team members spin between steps
};

// A model on a device: its static graph, its arena and its flat buffers, which may lie where the
// host cannot address them. It is built once; a step on the CPU allocates nothing. Not thread-safe:
// an engine has one caller.
class Engine {
 public:
  // Throws Invalid, naming the layer, where shapes do not fit.
  static std::unique_ptr<Engine> create(const ModelSpec& model, const EngineOptions& options);
  virtual ~Engine() = default;

  virtual const ParameterLayout& layout() const = 0;
  virtual Device device() const = 0;
  virtual int threads() const = 0;
  // Returns the properties that, besides the build, decide the bits of a result, for example
  // "avx512/2".
  virtual std::string instruction_set() const = 0;

  // The flat buffers, layout().size() floats each.
  virtual Memory& parameters() = 0;
  virtual Memory& gradients() = 0;
  // Returns the GPU that holds the flat buffers; null: no single GPU holds them.
  virtual cuda::Gpu* gpu_or_null() const { return nullptr; }
  // Allocates another flat buffer on this device, all zeros.
  virtual std::unique_ptr<Memory> allocate() const = 0;

  // Makes the engine use other memory for its flat buffers, of layout().size() floats each. The
  // memory must be on this device; on the CPU it must be aligned to cache lines, as memory from
  // Floats is. The content must be valid when this function is called, and the memory must live as
  // long as the engine uses it; a view need not outlive the call. With null `gradients` the engine
  // uses its own. Throws Invalid for memory of another size or device.
  virtual void use(Memory& parameters, Memory* gradients) = 0;
  // Makes the engine use its own memory again, with a copy of the parameters in the other memory.
  virtual void use_own() = 0;

  // Called during a backward pass when gradients [0, end) have their final values, by any of the
  // device's threads. That thread waits for the call, so it must be quick, and it must not throw. A
  // smaller `end` may be passed after a larger one. There is no call when all gradients are final:
  // compute_gradients() returns then.
  using OnComplete = std::function<void(size_t end)>;

  // Runs forward and backward: overwrites gradients() with sums over the batch's rows, without
  // dividing. The state segment of gradients() receives rows x the batch's statistics.
  virtual LossSums compute_gradients(const Batch& batch, const OnComplete& on_complete) = 0;
  LossSums compute_gradients(const Batch& batch) { return compute_gradients(batch, nullptr); }

  // Does compute_gradients and then the optimizer's update of everything, in one go on the device's
  // threads. The gradients are divided by the batch's own sums, not by the sums in `update`.
  // `slots` come from allocate(), in the order of Optimizer::slot_names(). The content of
  // gradients() is undefined afterwards: a gradient is used while it is in cache. With 0 rows
  // nothing is updated.
  virtual LossSums train(const Batch& batch, const Optimizer& optimizer,
                         const UpdateArguments& update, std::span<Memory* const> slots) = 0;

  // A device with a queue of its own can train ahead: begin_training() does what train() does, but
  // returns while the device works; the batch's memory is not needed any more then. For each call,
  // the caller must call end_training() once, in the same order; it waits for the step and returns
  // the step's sums. At most kMostAhead steps may be begun and not ended. While there is such a
  // step, the caller must not call other functions of the engine, and nobody may use parameters,
  // gradients or slots.
  static constexpr int kMostAhead = 2;
  virtual bool trains_ahead(const Optimizer& optimizer) const {
    static_cast<void>(optimizer);
    return false;
  }
  virtual void begin_training(const Batch& batch, const Optimizer& optimizer,
                              const UpdateArguments& update, std::span<Memory* const> slots);
  virtual LossSums end_training();

  // Runs forward only, without dropout, with the moving statistics. `outputs` receives the values
  // that the loss is computed from, [rows, output_count()]: logits, where the loss takes their
  // softmax. `outputs` may be empty: then it is not written.
  virtual LossSums evaluate(const Batch& batch, std::span<float> outputs) = 0;
  LossSums evaluate(const Batch& batch) { return evaluate(batch, {}); }
  // Writes the outputs [rows, outputs] after the last activation; softmax probabilities if the loss
  // takes the softmax.
  virtual void predict(const Batch& batch, std::span<float> outputs) = 0;
  virtual int64_t output_count() const = 0;

  // Says that this memory will often be copied to and from the device, so that the device can make
  // these copies faster. Pinning ends with the result, which must be destroyed before the memory
  // and the engine; null: the device has no use for pinning.
  virtual std::shared_ptr<void> pin(std::span<const std::byte> memory) {
    static_cast<void>(memory);
    return nullptr;
  }

  // A device with memory of its own can work while the next batch is copied to it. The CPU has no
  // use for the functions below.
  //
  // Says where the features of batches lie, so that the device can keep a copy if they never
  // change, or copy them without the host's help. The device uses the memory until the result is
  // destroyed, which must happen before the memory and the engine are; null: the device has no use
  // for the memory.
  virtual std::shared_ptr<void> serve(std::span<const std::byte> memory, Content content) {
    static_cast<void>(memory);
    static_cast<void>(content);
    return nullptr;
  }
  // Sets a function that compute_gradients() and train() call once for each batch with rows, in the
  // thread of the caller, when the device works and no longer needs the batch and its memory. If
  // the function throws, compute_gradients() or train() throws the same error when the device has
  // finished.
  virtual void set_meanwhile(const std::function<void()>& function) { static_cast<void>(function); }
  // Begins to copy the features of the batch that will probably be next. The features must stay in
  // place until the function above or prepare() is called again. A batch without rows ends a copy
  // that was begun.
  virtual void prepare(const Batch& next) { static_cast<void>(next); }
};

// Gives an optimizer's slots their initial values for these parameters.
void start_slots(const Optimizer& optimizer, Memory& parameters, std::span<Memory* const> slots);
// Allocates an optimizer's slots on the engine's device, and starts them for the engine's
// parameters.
std::vector<std::unique_ptr<Memory>> allocate_slots(Engine& engine, const Optimizer& optimizer);

}  // namespace muster::compute
