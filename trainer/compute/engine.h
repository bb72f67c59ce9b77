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

// The rows of one (micro)batch, by pointer: nothing is gathered before the device does it. The
// value of a feature is element * scale + offset.
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

// Whether memory keeps its content as long as an engine reads it.
enum class Content { constant, changing };

struct EngineOptions {
  Device device;
  Precision precision = Precision::float32;
  int64_t max_rows = 32;
  int threads = 0;        // 0: cpu_budget() capped by what the shapes are worth; then fixed
  uint64_t seed = 1;      // of dropout
  bool exclusive = true;  // nobody else wants these cores: team members spin between steps
};

// A model on a device: its static graph, its arena and its flat buffers, which may lie where the
// host cannot address them. It is built once; a step on the CPU allocates nothing. Not thread-safe:
// it has one caller.
class Engine {
 public:
  // Throws Invalid, naming the layer, where shapes do not fit.
  static std::unique_ptr<Engine> create(const ModelSpec& model, const EngineOptions& options);
  virtual ~Engine() = default;

  virtual const ParameterLayout& layout() const = 0;
  virtual Device device() const = 0;
  virtual int threads() const = 0;
  // Returns the properties that decide the bits of a result besides the build: "avx512/2" and so
  // on.
  virtual std::string instruction_set() const = 0;

  // The flat buffers, layout().size() floats each.
  virtual Memory& parameters() = 0;
  virtual Memory& gradients() = 0;
  // Returns the GPU in which they lie; null: they do not lie in one GPU.
  virtual cuda::Gpu* gpu_or_null() const { return nullptr; }
  // Allocates another flat buffer on this device, all zeros.
  virtual std::unique_ptr<Memory> allocate() const = 0;

  // Makes the engine use other memory for its flat buffers, of layout().size() floats each. It must
  // be memory of this device; on the CPU it must be aligned to cache lines, as memory from Floats
  // is. Its content is valid from this call on, and it must live as long as it is used; a view need
  // not outlive the call. With null `gradients` the engine uses its own. Throws Invalid for memory
  // of another size or device.
  virtual void use(Memory& parameters, Memory* gradients) = 0;
  // Makes the engine use its own memory again; it copies the parameters from the other memory.
  virtual void use_own() = 0;

  // Called during a backward pass when gradients [0, end) have their final values, by any of the
  // device's threads. That thread waits for the call, so it must be quick, and it must not throw. A
  // smaller `end` may be passed after a larger one. There is no call for all gradients: the return
  // of compute_gradients() means that.
  using OnComplete = std::function<void(size_t end)>;

  // Runs forward and backward: overwrites gradients() with sums over the batch's rows, without
  // dividing. The state segment of gradients() receives rows x the batch's statistics.
  virtual LossSums compute_gradients(const Batch& batch, const OnComplete& on_complete) = 0;
  LossSums compute_gradients(const Batch& batch) { return compute_gradients(batch, nullptr); }

  // Does compute_gradients and then the optimizer's update of everything, in one go on the device's
  // threads. The batch's own sums divide, not those that `update` names. `slots` come from
  // allocate(), in the order of Optimizer::slot_names(). The content of gradients() is undefined
  // afterwards: a gradient is used while it is in cache. With 0 rows nothing is updated.
  virtual LossSums train(const Batch& batch, const Optimizer& optimizer,
                         const UpdateArguments& update, std::span<Memory* const> slots) = 0;

  // A device with a queue of its own can train ahead: begin_training() does what train() does, but
  // returns while the device works; the batch's memory is not needed any more then. Each call is
  // answered by one of end_training(), in that order, which waits for its step and returns the
  // sums. At most kMostAhead steps are begun and not answered. While there are any, nothing else
  // may be asked of the engine, and nobody may use parameters, gradients or slots.
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

  // Says that this memory will be copied to and from the device often, which can be made faster. It
  // ends with the result, which must end before the memory and the engine; null: the device has no
  // use for it.
  virtual std::shared_ptr<void> pin(std::span<const std::byte> memory) {
    static_cast<void>(memory);
    return nullptr;
  }

  // A device with memory of its own can work while the next batch is copied to it. The CPU has no
  // use for what follows.
  //
  // Says where the features of batches lie, so that the device may keep a copy, if they never
  // change, or copy them without the host's help. It ends with the result, which must end before
  // the memory and the engine; null: the device has no use for it.
  virtual std::shared_ptr<void> serve(std::span<const std::byte> memory, Content content) {
    static_cast<void>(memory);
    static_cast<void>(content);
    return nullptr;
  }
  // Sets a function that compute_gradients() and train() call once for each batch with rows, in the
  // thread of the caller, when the device works and the batch and its memory are not needed any
  // more. What it throws they throw when the device has finished.
  virtual void set_meanwhile(const std::function<void()>& function) { static_cast<void>(function); }
  // Begins to copy the features of the batch that will probably be next. They must stay until the
  // function above is called again, or prepare(): a batch without rows ends what was begun.
  virtual void prepare(const Batch& next) { static_cast<void>(next); }
};

// Gives an optimizer's slots the values that they start with for these parameters.
void start_slots(const Optimizer& optimizer, Memory& parameters, std::span<Memory* const> slots);
// Allocates an optimizer's slots on the engine's device, and starts them for the engine's
// parameters.
std::vector<std::unique_ptr<Memory>> allocate_slots(Engine& engine, const Optimizer& optimizer);

}  // namespace muster::compute
