#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "common/environment.h"
#include "common/error.h"
#include "trainer/compute/cuda/gpu.h"
#include "trainer/compute/cuda/gpus.h"
#include "trainer/compute/cuda/runtime/check.h"
#include "trainer/compute/cuda/runtime/cublas_lt.h"
#include "trainer/compute/cuda/runtime/launch.h"
#include "trainer/compute/cuda/runtime/nccl.h"
#include "trainer/compute/cuda/runtime/nvml.h"

namespace muster::compute::cuda {
namespace {

class Stream {
 public:
  Stream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"); }
  explicit Event(cudaStream_t stream) : Event() { record(stream); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  operator cudaEvent_t() const { return event_; }
  void wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaRecording : public Recording {
 public:
  explicit CudaRecording(cudaGraph_t graph) {
    const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(error, "cudaGraphInstantiate");
  }
  ~CudaRecording() override { cudaGraphExecDestroy(executable_); }
  cudaGraphExec_t executable() const { return executable_; }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

using AddressRange = CUresult (*)(CUdeviceptr* base, size_t* size, CUdeviceptr at);

// Returns the driver's cuMemGetAddressRange, because the runtime has no such function.
AddressRange address_range() {
  static const AddressRange found = [] {
    constexpr unsigned kVersion = 12000;
    constexpr char kName[] = "cuMemGetAddressRange";
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result{};
    check(cudaGetDriverEntryPointByVersion(kName, &function, kVersion, cudaEnableDefault, &result),
          kName);
    if (result != cudaDriverEntryPointSuccess)
      throw Invalid(std::string("the driver has no ") + kName);
    return reinterpret_cast<AddressRange>(function);
  }();
  return found;
}

class CudaGpu : public Gpu {
 public:
  explicit CudaGpu(int ordinal) : ordinal_(selected(ordinal)) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
    name_ = properties.name;
    // If a kernel were loaded later, loading could wait for another GPU's kernel that waits for
    // this GPU.
    launches_early_ = load_kernels();
  }

  std::string name() const override { return name_; }

  void* allocate(size_t bytes) override {
    select();
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "cudaMalloc");
    // Our streams do not wait for the stream of cudaMemset.
    cudaError_t error = cudaMemsetAsync(memory, 0, bytes, copies_);
    if (error == cudaSuccess) error = cudaStreamSynchronize(copies_);
    if (error != cudaSuccess) cudaFree(memory);
    check(error, "cudaMemsetAsync");
    return memory;
  }
  void release(void* memory) noexcept override { cudaFree(memory); }
  void* allocate_host(size_t bytes) override {
    select();
    void* memory = nullptr;
    check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
    return memory;
  }
  void release_host(void* memory) noexcept override { cudaFreeHost(memory); }
  void* allocate_shared(size_t bytes) override {
    select();
    int together = 0;
    check(cudaDeviceGetAttribute(&together, cudaDevAttrConcurrentManagedAccess, ordinal_),
          "cudaDeviceGetAttribute");
    if (together == 0)
      throw Unavailable(name_ + " has no memory that the host can read while it computes");
    void* memory = nullptr;
    check(cudaMallocManaged(&memory, bytes), "cudaMallocManaged");
    // The host gets copies of the pages that it reads; the GPU's pages stay in place.
    const cudaMemLocation here{cudaMemLocationTypeDevice, ordinal_};
    cudaError_t error = cudaMemAdvise(memory, bytes, cudaMemAdviseSetPreferredLocation, here);
    if (error == cudaSuccess)
      error = cudaMemAdvise(memory, bytes, cudaMemAdviseSetReadMostly, here);
    if (error == cudaSuccess) error = cudaMemsetAsync(memory, 0, bytes, copies_);
    if (error == cudaSuccess) error = cudaStreamSynchronize(copies_);
    if (error != cudaSuccess) cudaFree(memory);
    check(error, "cudaMallocManaged");
    return memory;
  }
  void release_shared(void* memory) noexcept override { cudaFree(memory); }

  std::string offer(void* memory) override {
    select();
    cudaIpcMemHandle_t handle{};
    const cudaError_t error = cudaIpcGetMemHandle(&handle, memory);
    if (error == cudaErrorNotSupported) {
      cudaGetLastError();  // it is not an error of later work
      throw Unavailable(name_ + ": its memory cannot be shared with other processes");
    }
    check(error, "cudaIpcGetMemHandle");
    return {reinterpret_cast<const char*>(&handle), sizeof handle};
  }
  void* open(const std::string& offer, size_t bytes) override {
    select();
    cudaIpcMemHandle_t handle{};
    if (offer.size() != sizeof handle)
      throw Invalid("expected memory of a GPU as CUDA offers it, found " +
                    std::to_string(offer.size()) + " bytes");
    std::memcpy(&handle, offer.data(), sizeof handle);
    const AddressRange range_of = address_range();
    void* memory = nullptr;
    cudaError_t error = cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess);
    if (error == cudaSuccess && !holds(memory, bytes, range_of)) {
      cudaIpcCloseMemHandle(memory);
      error = cudaErrorInvalidValue;
    }
    if (error == cudaSuccess) return memory;
    cudaGetLastError();  // it is not an error of later work
    throw Invalid(std::string("memory of a GPU cannot be opened: ") + cudaGetErrorString(error));
  }
  void close(void* opened) noexcept override {
    cudaSetDevice(ordinal_);
    cudaIpcCloseMemHandle(opened);
  }

  void upload(void* to, const void* from, size_t bytes) override { copy(to, from, bytes, work_); }
  void download(void* to, const void* from, size_t bytes) override { copy(to, from, bytes, work_); }
  void clear(void* at, size_t bytes) override {
    select();
    check(cudaMemsetAsync(at, 0, bytes, work_), "cudaMemsetAsync");
  }
  void multiply(const MatrixProduct& product) override {
    select();
    products_.multiply(product, work_);
  }
  void wait() override {
    select();
    check(cudaStreamSynchronize(work_), "cudaStreamSynchronize");
  }
  Completion mark() override {
    select();
    return completion_of(work_);
  }

  void begin_recording() override {
    select();
    check(cudaStreamBeginCapture(work_, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  }
  std::unique_ptr<Recording> end_recording() override {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(work_, &graph), "cudaStreamEndCapture");
    return std::make_unique<CudaRecording>(graph);
  }
  void replay(Recording& recording) override {
    select();
    check(cudaGraphLaunch(dynamic_cast<CudaRecording&>(recording).executable(), work_),
          "cudaGraphLaunch");
  }

  std::string link_name() override {
    require_nccl();
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal_), "cudaGetDeviceProperties");
    std::string name = "GPU";
    for (const char byte : properties.uuid.bytes)
      name += fmt::format("-{:02x}", static_cast<unsigned char>(byte));
    // With this setting NCCL accepts a GPU more than once.
    if (environment_variable("NCCL_MULTI_RANK_GPU_ENABLE", "0") == "1")
      name += " of process " + std::to_string(getpid());
    return name;
  }
  std::string make_link_id() override { return make_nccl_id(); }
  std::vector<std::unique_ptr<GpuLink>> link(std::span<Gpu* const> gpus,
                                             const LinkedDevices& devices) override {
    std::vector<NcclMember> members;
    for (Gpu* gpu : gpus) {
      const auto& one = dynamic_cast<CudaGpu&>(*gpu);
      members.push_back({one.ordinal_, one.work_});
    }
    return link_by_nccl(members, devices);
  }

  void bring(void* to, const void* from, size_t bytes) override {
    copy(to, from, bytes, input_);
    brought_.record(input_);
  }
  void follow_brought() override {
    select();
    check(cudaStreamWaitEvent(work_, brought_), "cudaStreamWaitEvent");
  }
  void await_brought() override {
    select();
    brought_.wait();
  }
  bool pin(const void* memory, size_t bytes) override {
    select();
    if (cudaHostRegister(const_cast<void*>(memory), bytes, cudaHostRegisterPortable) == cudaSuccess)
      return true;
    cudaGetLastError();  // it is not an error of later work
    return false;
  }
  void unpin(const void* memory) noexcept override {
    cudaHostUnregister(const_cast<void*>(memory));
  }
  size_t free_bytes() const override {
    select();
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }

  Completion fetch(void* to, const void* from, size_t bytes) override {
    copy(to, from, bytes, copies_);
    return completion_of(copies_);
  }
  Completion put(void* to, const void* from, size_t bytes) override {
    return fetch(to, from, bytes);
  }

 protected:
  void launch(size_t kernel, Shape shape, const void* arguments) override {
    select();
    launch_kernel(kernel, shape, arguments, work_, launches_early_);
  }

 private:
  static int selected(int ordinal) {
    check(cudaSetDevice(ordinal), "cudaSetDevice");
    return ordinal;
  }
  // Each thread must select the GPU for itself.
  void select() const { selected(ordinal_); }

  // Returns whether an allocation of at least `bytes` bytes begins at `memory`.
  static bool holds(void* memory, size_t bytes, AddressRange range_of) {
    CUdeviceptr base = 0;
    size_t size = 0;
    const auto at = reinterpret_cast<CUdeviceptr>(memory);
    return range_of(&base, &size, at) == CUDA_SUCCESS && base == at && size >= bytes;
  }

  void copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
    select();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
  }

  static Completion completion_of(cudaStream_t stream) {
    return Completion([event = std::make_shared<Event>(stream)] { event->wait(); });
  }

  const int ordinal_;
  std::string name_;
  bool launches_early_ = false;
  const Stream work_, copies_, input_;
  Event brought_;
  CublasLt products_;
};

}  // namespace

const bool kInThisBuild = true;

namespace {

struct Found {
  int gpus = 0;
  std::string why_none;
};

const Found& found_gpus() {
  static const Found found = [] {
    Found result;
    const cudaError_t error = cudaGetDeviceCount(&result.gpus);
    if (error == cudaSuccess) return result;
    int driver = 0;
    cudaDriverGetVersion(&driver);
    return Found{0, driver == 0 ? "this machine has no NVIDIA driver" : cudaGetErrorString(error)};
  }();
  return found;
}

}  // namespace

int gpu_count() {
  return found_gpus().gpus;
}

std::string why_no_gpu() {
  return found_gpus().why_none;
}

std::unique_ptr<Gpu> open_gpu(int ordinal) {
  return std::make_unique<CudaGpu>(ordinal);
}

LookAtGpus look_at_gpus(int count) {
  // NVML counts all GPUs of the machine; CUDA only the GPUs in CUDA_VISIBLE_DEVICES.
  std::vector<std::string> places;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    std::array<char, 32> place{};
    check(cudaDeviceGetPCIBusId(place.data(), place.size(), ordinal), "cudaDeviceGetPCIBusId");
    places.emplace_back(place.data());
  }
  return [nvml = std::make_shared<Nvml>(), places = std::move(places)] {
    std::vector<GpuUse> uses;
    for (const std::string& place : places) uses.push_back(nvml->use_of(place));
    return uses;
  };
}

}  // namespace muster::compute::cuda
