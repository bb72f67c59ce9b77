#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

#include "common/error.h"
#include "common/system/descriptor.h"
#include "common/system/shared_memory.h"
#include "trainer/compute/cpu/check/checked_kernels.h"
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
  template <int64_t Floats>
  float* shared() {
    std::vector<float>& memory = shared_[Floats];
    memory.assign(static_cast<size_t>(Floats), NAN);  // a GPU's holds anything
    int64_t all = 0;
    for (const auto& [floats, one] : shared_) all += floats;
    if (all > 11 * 1024) throw std::logic_error("expected 11 k floats of shared memory at most");
    return memory.data();
  }

  template <class T>
  struct Locals {
    T& operator[](int64_t thread) { return values[static_cast<size_t>(thread)]; }
    std::vector<T> values = std::vector<T>(static_cast<size_t>(kBlockThreads));
  };
  template <class T>
  Locals<T> locals() {
    return {};
  }

  template <class Function>
  void each(Function function) {
    for (int64_t i = 0; i < kBlockThreads; ++i)
      function(order_ == ThreadOrder::ascending ? i : kBlockThreads - 1 - i);
  }
  template <class Function>
  float sum(Function function) {
    return fold(function, [](float a, float b) { return a + b; });
  }
  template <class Function>
  float most(Function function) {
    return fold(function, [](float a, float b) { return b > a ? b : a; });
  }

 private:
  // Halves are folded onto each other, as the GPU's threads do.
  template <class Function, class Join>
  float fold(Function function, Join join) {
    std::array<float, kBlockThreads> parts{};
    each([&](int64_t thread) { parts[static_cast<size_t>(thread)] = function(thread); });
    for (size_t half = kBlockThreads / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) parts[i] = join(parts[i], parts[i + half]);
    return parts[0];
  }

  const int64_t index_, count_;
  const ThreadOrder order_;
  std::map<int64_t, std::vector<float>> shared_;
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
  SimulatedGpu(ThreadOrder order, Links links)
      : order_(order), links_(links), kernels_(entries_of(cuda::KernelList{})) {}
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
    offered_.erase(memory);
  }
  void* allocate_host(size_t bytes) override { return ::operator new(bytes); }
  void release_host(void* memory) noexcept override { ::operator delete(memory); }
  void* allocate_shared(size_t bytes) override {
    return std::memset(::operator new(bytes, kShared), 0, bytes);
  }
  void release_shared(void* memory) noexcept override { ::operator delete(memory, kShared); }

  // The pages become a file's, which others can map.
  std::string offer(void* memory) override {
    const std::lock_guard lock(mutex_);
    const size_t bytes = allocations_.at(memory);
    Descriptor& file = offered_[memory];
    file = make_shared_memory("simulated-gpu", bytes);
    map_shared_memory(file, bytes, static_cast<std::byte*>(memory));
    protect(memory, bytes);
    return std::to_string(file.get());
  }
  void* open(const std::string& offer, size_t bytes) override {
    const Descriptor file = open_shared_memory("simulated-gpu", static_cast<uint32_t>(getpid()),
                                               static_cast<uint32_t>(std::stoi(offer)), bytes);
    const std::lock_guard lock(mutex_);
    void* memory = map_shared_memory(file, bytes);
    protect(memory, bytes);
    allocations_[memory] = bytes;
    return memory;
  }
  void close(void* opened) noexcept override { release(opened); }

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
  void lose() { lost_ = true; }
  bool breaks_links() const { return links_ == Links::broken; }
  void wait() override {
    require_there();
    if (asked_.empty()) return;
    const Opened opened(*this);
    const host::FlushSubnormals flush;
    for (const Work& work : std::exchange(asked_, {})) work();
    await_brought();
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

  // A copy arrives at once, or as late as it may.
  void bring(void* to, const void* from, size_t bytes) override {
    brought_.push_back([=] { std::memcpy(to, from, bytes); });
    if (order_ == ThreadOrder::ascending) await_brought();
  }
  void follow_brought() override {
    add([this] { await_brought(); });
  }
  void await_brought() override {
    require_there();
    const Opened opened(*this);
    for (const Work& copy : std::exchange(brought_, {})) copy();
  }
  bool pin(const void* memory, size_t) override { return pinned_.insert(memory).second; }
  void unpin(const void* memory) noexcept override { pinned_.erase(memory); }
  size_t free_bytes() const override { return size_t{1} << 20; }

  Completion fetch(void* to, const void* from, size_t bytes) override {
    return Completion([=, this] {
      require_there();
      const Opened opened(*this);
      std::memcpy(to, from, bytes);
    });
  }
  Completion put(void* to, const void* from, size_t bytes) override {
    return fetch(to, from, bytes);
  }

  std::string link_name() override {
    if (links_ == Links::impossible) throw Unavailable("these simulated GPUs cannot be linked");
    return "simulated GPU " + std::to_string(number_);
  }
  std::string make_link_id() override {
    static std::atomic<int> links{0};
    return "link " + std::to_string(++links);
  }
  std::vector<std::unique_ptr<cuda::GpuLink>> link(std::span<cuda::Gpu* const> gpus,
                                                   const LinkedDevices& devices) override;
  void add(Work work) { (recording_ ? recorded_ : asked_).push_back(std::move(work)); }

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
  static constexpr std::align_val_t kShared{256};

  // While it lives, the GPU's memory can be addressed.
  class Opened {
   public:
    explicit Opened(SimulatedGpu& gpu) : gpu_(gpu) { gpu_.open(1); }
    ~Opened() { gpu_.open(-1); }
    Opened(const Opened&) = delete;

   private:
    SimulatedGpu& gpu_;
  };

  void require_there() const {
    if (lost_) throw DeviceError("simulated GPU: it is lost", true);
  }

  void open(int change) {
    const std::lock_guard lock(mutex_);
    const bool before = opened_ > 0;
    opened_ += change;
    if (before == (opened_ > 0)) return;
    for (const auto& [memory, bytes] : allocations_) protect(memory, bytes);
  }
  void protect(void* memory, size_t bytes) const {
    const int access = opened_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (mprotect(memory, bytes, access) != 0) throw std::runtime_error("mprotect");
  }

  const ThreadOrder order_;
  const Links links_;
  static inline std::atomic<int> count_{0};
  const int number_ = ++count_;
  const std::vector<KernelEntry> kernels_;
  std::mutex mutex_;
  std::map<void*, size_t> allocations_;
  std::map<void*, Descriptor> offered_;
  int opened_ = 0;
  bool recording_ = false;
  bool lost_ = false;
  std::vector<Work> asked_, recorded_, brought_;
  std::set<const void*> pinned_;
};

// The members of a link of simulated GPUs share one of these, of one process or of several.
class Meeting {
 public:
  explicit Meeting(size_t members) : sent(members), members_(members) {}

  // Returns when all members have called it. `watch` is called meanwhile, and may throw.
  void meet(const std::function<void()>& watch) {
    std::unique_lock lock(mutex_);
    const uint64_t round = round_;
    if (++here_ == members_) {
      here_ = 0;
      ++round_;
      changed_.notify_all();
    }
    while (!changed_.wait_for(lock, std::chrono::milliseconds(2), [&] { return round_ != round; }))
      watch();
  }

  std::vector<const float*> sent;  // what each member sends from

 private:
  const size_t members_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t here_ = 0;
  uint64_t round_ = 0;
};

std::shared_ptr<Meeting> meeting_of(const LinkedDevices& devices) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Meeting>> meetings;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Meeting> meeting = meetings[devices.id].lock();
  if (!meeting) {
    meeting = std::make_shared<Meeting>(static_cast<size_t>(devices.count));
    meetings[devices.id] = meeting;
  }
  return meeting;
}

class SimulatedLink : public cuda::GpuLink {
 public:
  // The members of one process share this. Those of others do not learn of it.
  struct Process {
    std::shared_ptr<Meeting> meeting;
    std::function<void()> watch;
    std::atomic<bool> abandoned{false};
  };

  SimulatedLink(SimulatedGpu& gpu, size_t rank, std::shared_ptr<Process> process)
      : gpu_(gpu), rank_(rank), process_(std::move(process)) {}
  // The link gives up what it was asked for; the GPU does what it was asked for after that.
  ~SimulatedLink() override {
    *ended_ = true;
    try {
      gpu_.wait();
    } catch (const DeviceError&) {
    }
  }

  void exchange(const float* from, std::span<const Range> parts,
                std::span<float* const> to) override {
    const Range own = parts[rank_];
    together(from, [own, to = std::vector(to.begin(), to.end())](size_t member, const float* sent) {
      std::copy(sent + own.begin, sent + own.end, to[member]);
    });
  }
  void share(float* values, std::span<const Range> parts) override {
    together(values, [values, parts = std::vector(parts.begin(), parts.end())](size_t member,
                                                                               const float* sent) {
      std::copy(sent + parts[member].begin, sent + parts[member].end, values + parts[member].begin);
    });
  }
  void wait() override { gpu_.wait(); }
  void abandon() noexcept override { process_->abandoned = true; }

 private:
  // Takes from each other member while the memory of all can be addressed.
  template <class Take>
  void together(const float* from, Take take) {
    if (gpu_.breaks_links()) throw Unavailable("simulated GPU: nothing comes through");
    gpu_.add([rank = rank_, process = process_, ended = ended_, from, take] {
      if (*ended) return;
      Meeting& meeting = *process->meeting;
      meeting.sent[rank] = from;
      meeting.meet([&] {
        if (process->abandoned)
          throw Unavailable("simulated GPU: expected all members of the group");
        process->watch();
      });
      for (size_t member = 0; member < meeting.sent.size(); ++member)
        if (member != rank) take(member, meeting.sent[member]);
      meeting.meet([] {});
    });
  }

  SimulatedGpu& gpu_;
  const size_t rank_;
  const std::shared_ptr<Process> process_;
  const std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
};

std::vector<std::unique_ptr<cuda::GpuLink>> SimulatedGpu::link(std::span<cuda::Gpu* const> gpus,
                                                               const LinkedDevices& devices) {
  link_name();
  const auto process = std::make_shared<SimulatedLink::Process>();
  process->meeting = meeting_of(devices);
  process->watch = devices.watch;
  std::vector<std::unique_ptr<cuda::GpuLink>> links;
  for (size_t i = 0; i < gpus.size(); ++i)
    links.push_back(std::make_unique<SimulatedLink>(
        dynamic_cast<SimulatedGpu&>(*gpus[i]), static_cast<size_t>(devices.first) + i, process));
  return links;
}

}  // namespace

void lose(cuda::Gpu& gpu) {
  dynamic_cast<SimulatedGpu&>(gpu).lose();
}

std::unique_ptr<cuda::Gpu> make_simulated_gpu(ThreadOrder order, Links links) {
  return std::make_unique<SimulatedGpu>(order, links);
}

}  // namespace muster::compute::testing
