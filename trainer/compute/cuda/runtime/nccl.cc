#include "trainer/compute/cuda/runtime/nccl.h"

#include <dlfcn.h>
#include <nccl.h>

#include <atomic>

#include "common/error.h"
#include "trainer/compute/cuda/runtime/check.h"

namespace muster::compute::cuda {
namespace {

constexpr const char* kNcclFile = "libnccl.so.2";

// The library stays open until the process ends: its threads may outlive the last communicator.
class Nccl {
 public:
  Nccl() {
    void* file = dlopen(kNcclFile, RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr)
      throw Unavailable(std::string("expected NCCL as ") + kNcclFile +
                        " in the loader's path, found: " + dlerror());
    find(file, error_text, "ncclGetErrorString");
    find(file, make_all, "ncclCommInitAll");
    find(file, destroy, "ncclCommDestroy");
    find(file, abort, "ncclCommAbort");
    find(file, begin_group, "ncclGroupStart");
    find(file, end_group, "ncclGroupEnd");
    find(file, send, "ncclSend");
    find(file, receive, "ncclRecv");
    find(file, broadcast, "ncclBroadcast");
  }

  void expect_success(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return;
    throw Unavailable(std::string(what) +
                      ": expected success of NCCL, found: " + error_text(result));
  }

  decltype(ncclGetErrorString)* error_text = nullptr;
  decltype(ncclCommInitAll)* make_all = nullptr;
  decltype(ncclCommDestroy)* destroy = nullptr;
  decltype(ncclCommAbort)* abort = nullptr;
  decltype(ncclGroupStart)* begin_group = nullptr;
  decltype(ncclGroupEnd)* end_group = nullptr;
  decltype(ncclSend)* send = nullptr;
  decltype(ncclRecv)* receive = nullptr;
  decltype(ncclBroadcast)* broadcast = nullptr;

 private:
  template <class Function>
  static void find(void* file, Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(file, name));
    if (function == nullptr)
      throw Unavailable(std::string("expected the function ") + name + " in " + kNcclFile +
                        ", found none");
  }
};

class NcclLink : public GpuLink {
 public:
  NcclLink(std::shared_ptr<const Nccl> nccl, ncclComm_t communicator, const NcclMember& member,
           int rank)
      : nccl_(std::move(nccl)), communicator_(communicator), member_(member), rank_(rank) {}
  ~NcclLink() override {
    if (!abandoned_) nccl_->destroy(communicator_);
  }

  void exchange(const float* from, std::span<const Range> parts,
                std::span<float* const> to) override {
    const size_t own = parts[static_cast<size_t>(rank_)].size();
    together([&] {
      for (size_t member = 0; member < parts.size(); ++member) {
        if (static_cast<int>(member) == rank_) continue;
        const Range part = parts[member];
        if (part.size() > 0)
          nccl_->expect_success(
              nccl_->send(from + part.begin, part.size(), ncclFloat32, static_cast<int>(member),
                          communicator_, member_.stream),
              "ncclSend");
        if (own > 0)
          nccl_->expect_success(
              nccl_->receive(to[member], own, ncclFloat32, static_cast<int>(member), communicator_,
                             member_.stream),
              "ncclRecv");
      }
    });
  }

  void share(float* values, std::span<const Range> parts) override {
    together([&] {
      for (size_t member = 0; member < parts.size(); ++member) {
        float* part = values + parts[member].begin;
        if (parts[member].size() > 0)
          nccl_->expect_success(
              nccl_->broadcast(part, part, parts[member].size(), ncclFloat32,
                               static_cast<int>(member), communicator_, member_.stream),
              "ncclBroadcast");
      }
    });
  }

  void abandon() noexcept override {
    if (!abandoned_.exchange(true)) nccl_->abort(communicator_);
  }

 private:
  // The calls of a group are started together.
  template <class Calls>
  void together(Calls calls) {
    check(cudaSetDevice(member_.ordinal), "cudaSetDevice");
    nccl_->expect_success(nccl_->begin_group(), "ncclGroupStart");
    calls();
    nccl_->expect_success(nccl_->end_group(), "ncclGroupEnd");
  }

  const std::shared_ptr<const Nccl> nccl_;
  const ncclComm_t communicator_;
  const NcclMember member_;
  const int rank_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace

std::vector<std::unique_ptr<GpuLink>> link_by_nccl(const std::vector<NcclMember>& members,
                                                   std::string& why) {
  std::vector<std::unique_ptr<GpuLink>> links;
  try {
    const auto nccl = std::make_shared<const Nccl>();
    std::vector<int> ordinals;
    for (const NcclMember& member : members) ordinals.push_back(member.ordinal);
    std::vector<ncclComm_t> communicators(members.size());
    nccl->expect_success(
        nccl->make_all(communicators.data(), static_cast<int>(members.size()), ordinals.data()),
        "ncclCommInitAll");
    for (size_t i = 0; i < members.size(); ++i)
      links.push_back(
          std::make_unique<NcclLink>(nccl, communicators[i], members[i], static_cast<int>(i)));
  } catch (const Unavailable& error) {
    why = error.what();
    links.clear();
  }
  return links;
}

}  // namespace muster::compute::cuda
