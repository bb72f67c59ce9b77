#include "tests/unit/trainer/compute/far_engine.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "common/error.h"
#include "trainer/compute/cpu/engine.h"

namespace muster::compute::testing {
namespace {

class FarMemory : public Memory {
 public:
  explicit FarMemory(size_t floats) : floats_(floats) {
    if (floats == 0) return;
    void* memory = mmap(nullptr, bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    values_ = static_cast<float*>(memory);
  }
  ~FarMemory() override {
    if (values_ != nullptr) munmap(values_, bytes());
  }

  size_t size() const override { return floats_; }
  PlacedFloats floats() override { return {Place::gpu, values_, floats_}; }
  Completion read(Range range, PlacedFloats placed) const override {
    const std::span<float> to = placed.host();
    std::fill_n(to.begin(), range.size(), std::numeric_limits<float>::quiet_NaN());
    return Completion([this, range, to] {
      const Opened opened(*this);
      std::copy_n(values_ + range.begin, range.size(), to.begin());
    });
  }
  Completion write(Range range, ConstPlacedFloats placed) override {
    const std::span<const float> from = placed.host();
    return Completion([this, range, from] {
      const Opened opened(*this);
      std::copy_n(from.begin(), range.size(), values_ + range.begin);
    });
  }

  // While it lives, the memory can be addressed.
  class Opened {
   public:
    explicit Opened(const FarMemory& memory) : memory_(memory) { memory_.open(1); }
    ~Opened() { memory_.open(-1); }
    Opened(const Opened&) = delete;
    std::span<float> values() const { return {memory_.values_, memory_.floats_}; }

   private:
    const FarMemory& memory_;
  };

 private:
  size_t bytes() const { return floats_ * sizeof(float); }
  void open(int change) const {
    const std::lock_guard lock(mutex_);
    opened_ += change;
    const int access = opened_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (values_ != nullptr && mprotect(values_, bytes(), access) != 0)
      throw std::runtime_error("mprotect");
  }

  const size_t floats_;
  float* values_ = nullptr;
  mutable std::mutex mutex_;
  mutable int opened_ = 0;
};

FarMemory& as_far(Memory& memory, size_t floats) {
  auto* far = dynamic_cast<FarMemory*>(&memory);
  if (far == nullptr || far->size() != floats)
    throw Invalid("far engine: expected memory of its own kind and size");
  return *far;
}

class FarEngine : public Engine {
 public:
  FarEngine(const ModelSpec& model, const EngineOptions& options)
      : inner_(Engine::create(model, on_cpu(options))),
        device_(options.device),
        own_parameters_(inner_->layout().size()),
        own_gradients_(inner_->layout().size()) {}

  const ParameterLayout& layout() const override { return inner_->layout(); }
  Device device() const override { return device_; }
  int threads() const override { return inner_->threads(); }
  std::string instruction_set() const override { return inner_->instruction_set(); }
  Memory& parameters() override { return *parameters_; }
  Memory& gradients() override { return *gradients_; }
  std::unique_ptr<Memory> allocate() const override {
    return std::make_unique<FarMemory>(layout().size());
  }
  void use(Memory& parameters, Memory* gradients) override {
    parameters_ = &as_far(parameters, layout().size());
    gradients_ = gradients ? &as_far(*gradients, layout().size()) : &own_gradients_;
  }
  void use_own() override {
    if (parameters_ != &own_parameters_) {
      const FarMemory::Opened from(*parameters_), to(own_parameters_);
      std::ranges::copy(from.values(), to.values().begin());
    }
    parameters_ = &own_parameters_;
    gradients_ = &own_gradients_;
  }

  using Engine::compute_gradients;
  LossSums compute_gradients(const Batch& batch, const OnComplete& on_complete) override {
    return opened([&] { return inner_->compute_gradients(batch, on_complete); });
  }
  LossSums train(const Batch& batch, const Optimizer& optimizer, const UpdateArguments& update,
                 std::span<Memory* const> slots) override {
    std::vector<std::unique_ptr<FarMemory::Opened>> opened_slots;
    std::vector<std::unique_ptr<HostMemory>> views;
    std::vector<Memory*> inner_slots;
    for (Memory* slot : slots) {
      opened_slots.push_back(std::make_unique<FarMemory::Opened>(as_far(*slot, layout().size())));
      views.push_back(std::make_unique<HostMemory>(opened_slots.back()->values()));
      inner_slots.push_back(views.back().get());
    }
    return opened([&] { return inner_->train(batch, optimizer, update, inner_slots); });
  }
  using Engine::evaluate;
  LossSums evaluate(const Batch& batch, std::span<float> outputs) override {
    return opened([&] { return inner_->evaluate(batch, outputs); });
  }
  void predict(const Batch& batch, std::span<float> outputs) override {
    opened([&] {
      inner_->predict(batch, outputs);
      return LossSums{};
    });
  }
  int64_t output_count() const override { return inner_->output_count(); }

 private:
  static EngineOptions on_cpu(EngineOptions options) {
    options.device = {};
    return options;
  }
  template <class Work>
  LossSums opened(const Work& work) {
    const FarMemory::Opened parameters(*parameters_), gradients(*gradients_);
    HostMemory parameters_view(parameters.values()), gradients_view(gradients.values());
    inner_->use(parameters_view, &gradients_view);
    return work();
  }

  const std::unique_ptr<Engine> inner_;
  const Device device_;
  FarMemory own_parameters_, own_gradients_;
  FarMemory* parameters_ = &own_parameters_;
  FarMemory* gradients_ = &own_gradients_;
};

}  // namespace

std::unique_ptr<Engine> make_far_engine(const ModelSpec& model, const EngineOptions& options) {
  return std::make_unique<FarEngine>(model, options);
}

}  // namespace muster::compute::testing
