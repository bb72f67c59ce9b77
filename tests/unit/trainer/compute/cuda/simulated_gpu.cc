#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"

#include <sys/mman.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/host/instruction_set.h"

namespace muster::compute::testing {
namespace {

using cuda::kBlockThreads;
using cuda::Shape;

// See trainer/compute/cuda/grid.h.
class SimulatedBlock {
 public:
  SimulatedBlock(int64_t index, int64_t count, ThreadOrder order)
      : index_(index), count_(count), order_(order) {}

  int64_t index() const { return index_; }
  int64_t count() const { return count_; }
  float* shared() { return shared_.data(); }

  template <class Function>
  void each(Function function) {
    for (int64_t i = 0; i < kBlockThreads; ++i)
      function(order_ == ThreadOrder::ascending ? i : kBlockThreads - 1 - i);
  }
  // Halves are folded onto each other, as the GPU's threads do.
  template <class Function>
  float sum(Function function) {
    std::array<float, kBlockThreads> parts{};
    each([&](int64_t thread) { parts[static_cast<size_t>(thread)] = function(thread); });
    for (size_t half = kBlockThreads / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
    return parts[0];
  }
  template <class Function>
  float most(Function function) {
    float largest = -INFINITY;
    each([&](int64_t thread) {
      const float value = function(thread);
      if (value > largest) largest = value;
    });
    return largest;
  }

 private:
  const int64_t index_, count_;
  const ThreadOrder order_;
  std::array<float, cuda::kSharedFloats> shared_{};
};

using RunKernel = void (*)(Shape shape, const void* arguments, ThreadOrder order);

template <class Kernel>
void run_kernel(Shape shape, const void* arguments, ThreadOrder order) {
  const Kernel& kernel = *static_cast<const Kernel*>(arguments);
  for (int64_t i = 0; i < shape.blocks; ++i) {
    const int64_t index = order == ThreadOrder::ascending ? i : shape.blocks - 1 - i;
    SimulatedBlock block(index, shape.blocks, order);
    kernel(block);
  }
}

struct KernelEntry {
  RunKernel run;
  size_t bytes;
};
template <class... Kernel>
std::vector<KernelEntry> entries_of(cuda::Kernels<Kernel...>) {
  return {{run_kernel<Kernel>, sizeof(Kernel)}...};
}

// A matrix as floats: itself, or a copy.
class Floats {
 public:
  Floats(const cuda::Numbers& numbers, int64_t rows, int64_t columns, int64_t ld)
      : numbers_(numbers), count_(rows == 0 || columns == 0 ? 0 : (rows - 1) * ld + columns) {
    if (!numbers.half()) return;
    for (int64_t i = 0; i < count_; ++i) copy_.push_back(numbers.load(i));
  }
  float* data() { return numbers_.half() ? copy_.data() : static_cast<float*>(numbers_.data()); }
  void store() const {
    for (size_t i = 0; i < copy_.size(); ++i) numbers_.store(static_cast<int64_t>(i), copy_[i]);
  }

 private:
  const cuda::Numbers numbers_;
  const int64_t count_;
  std::vector<float> copy_;
};

void multiply_now(const cuda::MatrixProduct& p) {
  if (p.a.half() != p.b.half()) throw std::logic_error("expected factors of one format");
  const cpu::Kernels& kernels = cpu::kernels();
  std::vector<float> turned;
  Floats a(p.a, p.a_transposed ? p.k : p.m, p.a_transposed ? p.m : p.k, p.lda);
  Floats b(p.b, p.b_transposed ? p.n : p.k, p.b_transposed ? p.k : p.n, p.ldb);
  Floats c(p.c, p.m, p.n, p.ldc);
  cpu::Gemm gemm{p.m, p.n, p.k, a.data(), p.lda, 1, b.data(), p.ldb, c.data(), p.ldc, p.accumulate};
  if (p.a_transposed) std::swap(gemm.a_row, gemm.a_column);
  if (p.b_transposed) {
    turned.resize(static_cast<size_t>(p.k * p.n));
    kernels.transpose(p.n, p.k, b.data(), p.ldb, turned.data(), p.n);
    gemm.b = turned.data();
    gemm.ldb = p.n;
  }
  kernels.gemm(gemm);
  c.store();
}

using Work = std::function<void()>;

class SimulatedRecording : public cuda::Recording {
 public:
  explicit SimulatedRecording(std::vector<Work> recorded) : work(std::move(recorded)) {}
  const std::vector<Work> work;
};

class SimulatedGpu : public cuda::Gpu {
 public:
  explicit SimulatedGpu(ThreadOrder order)
      : order_(order), kernels_(entries_of(cuda::KernelList{})) {}
  ~SimulatedGpu() override {
    for (const auto& [memory, bytes] : allocations_) munmap(memory, bytes);
  }

  std::string name() const override { return "simulated GPU"; }

  void* allocate(size_t bytes) override {
    const std::lock_guard lock(mutex_);
    void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    allocations_[memory] = bytes;
    return memory;
  }
  void release(void* memory) noexcept override {
    const std::lock_guard lock(mutex_);
    munmap(memory, allocations_.at(memory));
    allocations_.erase(memory);
  }
  void* allocate_host(size_t bytes) override { return ::operator new(bytes); }
  void release_host(void* memory) noexcept override { ::operator delete(memory); }

  void upload(void* to, const void* from, size_t bytes) override {
    add([=] { std::memcpy(to, from, bytes); });
  }
  void download(void* to, const void* from, size_t bytes) override { upload(to, from, bytes); }
  void clear(void* at, size_t bytes) override {
    add([=] { std::memset(at, 0, bytes); });
  }
  void multiply(const cuda::MatrixProduct& product) override {
    add([product] { multiply_now(product); });
  }
  void wait() override {
    if (asked_.empty()) return;
    const Opened opened(*this);
    const host::FlushSubnormals flush;
    for (const Work& work : std::exchange(asked_, {})) work();
  }
  Completion mark() override {
    return Completion([this] { wait(); });
  }

  void begin_recording() override { recording_ = true; }
  std::unique_ptr<cuda::Recording> end_recording() override {
    recording_ = false;
    return std::make_unique<SimulatedRecording>(std::exchange(recorded_, {}));
  }
  void replay(cuda::Recording& recording) override {
    for (const Work& work : dynamic_cast<SimulatedRecording&>(recording).work) add(work);
  }

  Completion fetch(void* to, const void* from, size_t bytes) override {
    return Completion([=, this] {
      const Opened opened(*this);
      std::memcpy(to, from, bytes);
    });
  }
  Completion put(void* to, const void* from, size_t bytes) override {
    return fetch(to, from, bytes);
  }

 protected:
  void launch(size_t kernel, Shape shape, const void* arguments) override {
    if (shape.blocks < 1) throw std::logic_error("expected a grid of at least one block");
    const KernelEntry& entry = kernels_.at(kernel);
    std::vector<char> copy(entry.bytes);
    std::memcpy(copy.data(), arguments, entry.bytes);
    add([copy = std::move(copy), run = entry.run, shape, order = order_] {
      run(shape, copy.data(), order);
    });
  }

 private:
  // While it lives, the GPU's memory can be addressed.
  class Opened {
   public:
    explicit Opened(SimulatedGpu& gpu) : gpu_(gpu) { gpu_.open(1); }
    ~Opened() { gpu_.open(-1); }
    Opened(const Opened&) = delete;

   private:
    SimulatedGpu& gpu_;
  };

  void open(int change) {
    const std::lock_guard lock(mutex_);
    const bool before = opened_ > 0;
    opened_ += change;
    if (before == (opened_ > 0)) return;
    const int access = opened_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
    for (const auto& [memory, bytes] : allocations_)
      if (mprotect(memory, bytes, access) != 0) throw std::runtime_error("mprotect");
  }

  void add(Work work) { (recording_ ? recorded_ : asked_).push_back(std::move(work)); }

  const ThreadOrder order_;
  const std::vector<KernelEntry> kernels_;
  std::mutex mutex_;
  std::map<void*, size_t> allocations_;
  int opened_ = 0;
  bool recording_ = false;
  std::vector<Work> asked_, recorded_;
};

}  // namespace

std::unique_ptr<cuda::Gpu> make_simulated_gpu(ThreadOrder order) {
  return std::make_unique<SimulatedGpu>(order);
}

}  // namespace muster::compute::testing
