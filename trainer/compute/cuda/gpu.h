#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/compute/cuda/gpu_link.h"
#include "trainer/compute/cuda/kernels/kernels.h"
#include "trainer/compute/cuda/numbers.h"
#include "trainer/compute/linked_devices.h"
#include "trainer/compute/memory.h"

namespace muster::compute::cuda {

// c = a b or, with `accumulate`, c += a b, added up in float32. a and b are both floats or both
// bfloat16. All matrices are row-major: c is [m, n]; a is [m, k] or, if it is transposed, [k, m]; b
// is [k, n] or [n, k]. ld* are the distances, in numbers, from a row to the next row. A product
// with k = 0 is zero.
struct MatrixProduct {
  int64_t m = 0, n = 0, k = 0;
  Numbers a;
  int64_t lda = 0;
  bool a_transposed = false;
  Numbers b;
  int64_t ldb = 0;
  bool b_transposed = false;
  Numbers c;
  int64_t ldc = 0;
  bool accumulate = false;
};

// Recorded work of a GPU, which can be run again.
class Recording {
 public:
  virtual ~Recording() = default;
};

// A GPU with a queue of work. Work is done in the order of the calls, after the call has returned;
// memory that the work reads or writes must exist until the work is done. Any call may throw
// DeviceError, for an error of this call or of earlier work, and Unavailable if memory or a library
// is missing. A GPU has one caller, except for fetch() and put(), and for the functions that
// allocate, release, offer and open memory.
class Gpu {
 public:
  virtual ~Gpu() = default;
  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // Returns the name that, besides the build, decides the bits of a result, for example "NVIDIA
  // H100 80GB HBM3".
  virtual std::string name() const = 0;

  // Allocate memory of the GPU, all zeros, aligned to 256 bytes; and memory of the host that the
  // GPU copies fast and kernels can address.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void* allocate_host(size_t bytes) = 0;
  virtual void release_host(void* memory) noexcept = 0;
  // Allocates memory, all zeros, that lies in the GPU's memory and that the host and kernels can
  // address: pages that the host reads are copied to the host. Throws Unavailable if the GPU has
  // none of this kind.
  virtual void* allocate_shared(size_t bytes) = 0;
  virtual void release_shared(void* memory) noexcept = 0;

  // Lets other processes of this host use memory from allocate(). Returns the argument for open()
  // in the other processes. They should close the memory before it is released here: CUDA's
  // documentation does not define what they read afterwards. Throws Unavailable if the GPU cannot
  // share its memory.
  virtual std::string offer(void* memory) = 0;
  // Opens memory of `bytes` that a GPU of another process offers. Throws Invalid with the reason if
  // it cannot: another host or container, or a GPU that this GPU cannot reach.
  virtual void* open(const std::string& offer, size_t bytes) = 0;
  virtual void close(void* opened) noexcept = 0;

  // Copy from host memory to the GPU's memory, and back; or within the GPU's memory.
  virtual void upload(void* to, const void* from, size_t bytes) = 0;
  virtual void download(void* to, const void* from, size_t bytes) = 0;
  virtual void clear(void* at, size_t bytes) = 0;
  virtual void multiply(const MatrixProduct& product) = 0;
  template <class Kernel>
  void launch(const Kernel& kernel) {
    launch(place_of<Kernel>(KernelList{}), kernel.shape(), &kernel);
  }
  // Returns when all work so far is done.
  virtual void wait() = 0;
  // Returns a completion of all work so far.
  virtual Completion mark() = 0;

  // Between begin_recording() and end_recording() work is recorded and not done. Only upload() and
  // download() of the same host memory, clear(), multiply() and launch() can be recorded.
  virtual void begin_recording() = 0;
  virtual std::unique_ptr<Recording> end_recording() = 0;
  virtual void replay(Recording& recording) = 0;

  // Returns a name for links that no other GPU has. Throws Unavailable if this GPU cannot be linked
  // with any other GPU.
  virtual std::string link_name() = 0;
  // See EngineGroup::make_link_id().
  virtual std::string make_link_id() = 0;
  // Links GPUs of this kind. `gpus` are the GPUs of this process, with this one among them; the
  // i-th link is for gpus[i]. Throws Unavailable if they cannot be linked.
  virtual std::vector<std::unique_ptr<GpuLink>> link(std::span<Gpu* const> gpus,
                                                     const LinkedDevices& devices) = 0;

  // Copies from host memory beside the queue; only one caller. Work after follow_brought() waits
  // until all earlier copies are complete; await_brought() makes the caller wait.
  virtual void bring(void* to, const void* from, size_t bytes) = 0;
  virtual void follow_brought() = 0;
  virtual void await_brought() = 0;
  // Makes copies from and to this memory run without the host's help. Returns false if this is not
  // possible.
  virtual bool pin(const void* memory, size_t bytes) = 0;
  virtual void unpin(const void* memory) noexcept = 0;
  // Returns how much of the GPU's memory is free.
  virtual size_t free_bytes() const = 0;

  // Copy beside the queue: at once, without waiting for earlier work.
  virtual Completion fetch(void* to, const void* from, size_t bytes) = 0;
  virtual Completion put(void* to, const void* from, size_t bytes) = 0;

 protected:
  // Runs the kernel with this place in KernelList.
  virtual void launch(size_t kernel, Shape shape, const void* arguments) = 0;
};

// Pins the memory until the result is destroyed, which must happen before the GPU is. Null: the
// memory cannot be pinned.
inline std::shared_ptr<void> pinned(Gpu& gpu, std::span<const std::byte> memory) {
  if (memory.empty() || !gpu.pin(memory.data(), memory.size())) return nullptr;
  return {const_cast<std::byte*>(memory.data()), [&gpu](std::byte* at) { gpu.unpin(at); }};
}

// An array in a GPU's memory, all zeros at start.
template <class T>
class GpuArray {
 public:
  GpuArray(Gpu& gpu, int64_t count)
      : gpu_(gpu),
        data_(count == 0 ? nullptr : gpu.allocate(static_cast<size_t>(count) * sizeof(T))) {}
  ~GpuArray() {
    if (data_ != nullptr) gpu_.release(data_);
  }
  GpuArray(const GpuArray&) = delete;
  GpuArray& operator=(const GpuArray&) = delete;

  T* data() const { return static_cast<T*>(data_); }

 private:
  Gpu& gpu_;
  void* data_;
};

// An array in the host's memory for copies from and to a GPU.
template <class T>
class HostArray {
 public:
  HostArray(Gpu& gpu, int64_t count)
      : gpu_(gpu),
        data_(count == 0 ? nullptr : gpu.allocate_host(static_cast<size_t>(count) * sizeof(T))) {}
  ~HostArray() {
    if (data_ != nullptr) gpu_.release_host(data_);
  }
  HostArray(const HostArray&) = delete;
  HostArray& operator=(const HostArray&) = delete;

  T* data() const { return static_cast<T*>(data_); }

 private:
  Gpu& gpu_;
  void* data_;
};

}  // namespace muster::compute::cuda
