#include "trainer/compute/cuda/runtime/nccl.h"

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "common/error.h"
#include "trainer/compute/cuda/runtime/check.h"
#include "trainer/compute/cuda/runtime/shared_library.h"

namespace muster::compute::cuda {
namespace {

// The library stays open until the process ends: its threads may outlive the last communicator.
class Nccl {
 public:
  Nccl() {
    file_.find(error_text, "ncclGetErrorString");
    file_.find(make_id, "ncclGetUniqueId");
    file_.find(make, "ncclCommInitRankConfig");
    file_.find(state, "ncclCommGetAsyncError");
    file_.find(destroy, "ncclCommDestroy");
    file_.find(abort, "ncclCommAbort");
    file_.find(begin_group, "ncclGroupStart");
    file_.find(end_group, "ncclGroupEnd");
    file_.find(send, "ncclSend");
    file_.find(receive, "ncclRecv");
    file_.find(broadcast, "ncclBroadcast");
  }

  void expect_success(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return;
    check(cudaPeekAtLastError(), what);  // an error of the GPU is told as such
    throw Unavailable(std::string(what) +
                      ": expected success of NCCL, found: " + error_text(result));
  }

  decltype(ncclGetErrorString)* error_text = nullptr;
  decltype(ncclGetUniqueId)* make_id = nullptr;
  decltype(ncclCommInitRankConfig)* make = nullptr;
  decltype(ncclCommGetAsyncError)* state = nullptr;
  decltype(ncclCommDestroy)* destroy = nullptr;
  decltype(ncclCommAbort)* abort = nullptr;
  decltype(ncclGroupStart)* begin_group = nullptr;
  decltype(ncclGroupEnd)* end_group = nullptr;
  decltype(ncclSend)* send = nullptr;
  decltype(ncclRecv)* receive = nullptr;
  decltype(ncclBroadcast)* broadcast = nullptr;

 private:
  const SharedLibrary file_{"NCCL", "libnccl.so.2", /*stays_open=*/true};
};

// Each communicator is used by the thread of its GPU alone, from the first exchange on.
class NcclLink : public GpuLink {
 public:
  NcclLink(std::shared_ptr<const Nccl> nccl, ncclComm_t communicator, const NcclMember& member,
           int rank, std::shared_ptr<std::atomic<bool>> abandoned)
      : nccl_(std::move(nccl)),
        communicator_(communicator),
        member_(member),
        rank_(rank),
        abandoned_(std::move(abandoned)) {
    *member_.watch = [this] { look(); };
  }
  ~NcclLink() override {
    *member_.watch = nullptr;
    if (communicator_ == nullptr) return;
    if (*abandoned_)
      nccl_->abort(communicator_);
    else
      nccl_->destroy(communicator_);
  }

  void exchange(const float* from, std::span<const Range> parts,
                std::span<float* const> to) override {
    const size_t own = parts[static_cast<size_t>(rank_)].size();
    together([&](auto call) {
      for (size_t member = 0; member < parts.size(); ++member) {
        const int other = static_cast<int>(member);
        if (other == rank_) continue;
        const Range part = parts[member];
        if (part.size() > 0)
          call(nccl_->send(from + part.begin, part.size(), ncclFloat32, other, communicator_,
                           member_.stream),
               "ncclSend");
        if (own > 0)
          call(nccl_->receive(to[member], own, ncclFloat32, other, communicator_, member_.stream),
               "ncclRecv");
      }
    });
  }

  void share(float* values, std::span<const Range> parts) override {
    together([&](auto call) {
      for (size_t member = 0; member < parts.size(); ++member) {
        float* part = values + parts[member].begin;
        if (parts[member].size() > 0)
          call(nccl_->broadcast(part, part, parts[member].size(), ncclFloat32,
                                static_cast<int>(member), communicator_, member_.stream),
               "ncclBroadcast");
      }
    });
  }

  void abandon() noexcept override { *abandoned_ = true; }

 private:
  // The calls of a group are started together. The group is ended also where a call fails.
  template <class Calls>
  void together(Calls calls) {
    check(cudaSetDevice(member_.ordinal), "cudaSetDevice");
    look();
    nccl_->expect_success(nccl_->begin_group(), "ncclGroupStart");
    ncclResult_t failure = ncclSuccess;
    const char* failed = "";
    calls([&](ncclResult_t result, const char* what) {
      if (result == ncclSuccess || result == ncclInProgress || failure != ncclSuccess) return;
      failure = result;
      failed = what;
    });
    const ncclResult_t ended = nccl_->end_group();
    nccl_->expect_success(failure, failed);
    if (ended != ncclInProgress) nccl_->expect_success(ended, "ncclGroupEnd");
    while (look() == ncclInProgress) std::this_thread::yield();
  }

  // Returns what the communicator does. Throws if it has failed, or another member has: then the
  // GPU's work with others is given up.
  ncclResult_t look() {
    ncclResult_t state = ncclSuccess;
    if (communicator_ != nullptr && !*abandoned_) {
      const ncclResult_t asked = nccl_->state(communicator_, &state);
      if (asked != ncclSuccess) state = asked;
      if (state == ncclSuccess || state == ncclInProgress) return state;
    }
    *abandoned_ = true;
    if (communicator_ != nullptr) nccl_->abort(std::exchange(communicator_, nullptr));
    nccl_->expect_success(state, "NCCL");
    throw Unavailable("expected all GPUs of the group to go on, found that another one has failed");
  }

  const std::shared_ptr<const Nccl> nccl_;
  ncclComm_t communicator_;  // null: given up
  const NcclMember member_;
  const int rank_;
  const std::shared_ptr<std::atomic<bool>> abandoned_;  // of all members
};

// Makes a communicator for each member, whose calls return at once.
std::vector<ncclComm_t> communicators_of(const Nccl& nccl, const std::vector<NcclMember>& members) {
  std::vector<ncclComm_t> made(members.size());
  ncclUniqueId id{};
  nccl.expect_success(nccl.make_id(&id), "ncclGetUniqueId");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  nccl.expect_success(nccl.begin_group(), "ncclGroupStart");
  ncclResult_t failure = ncclSuccess;
  for (size_t i = 0; i < members.size(); ++i) {
    check(cudaSetDevice(members[i].ordinal), "cudaSetDevice");
    const ncclResult_t result =
        nccl.make(&made[i], static_cast<int>(members.size()), id, static_cast<int>(i), &config);
    if (result != ncclSuccess && result != ncclInProgress) failure = result;
  }
  const ncclResult_t ended = nccl.end_group();
  if (failure == ncclSuccess && ended != ncclInProgress) failure = ended;
  for (size_t i = 0; i < members.size() && failure == ncclSuccess; ++i) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      nccl.expect_success(nccl.state(made[i], &state), "ncclCommGetAsyncError");
    }
    failure = state;
  }
  nccl.expect_success(failure, "ncclCommInitRankConfig");
  return made;
}

}  // namespace

std::vector<std::unique_ptr<GpuLink>> link_by_nccl(const std::vector<NcclMember>& members,
                                                   std::string& why) {
  std::vector<std::unique_ptr<GpuLink>> links;
  try {
    const auto nccl = std::make_shared<const Nccl>();
    const std::vector<ncclComm_t> communicators = communicators_of(*nccl, members);
    const auto abandoned = std::make_shared<std::atomic<bool>>(false);
    for (size_t i = 0; i < members.size(); ++i)
      links.push_back(std::make_unique<NcclLink>(nccl, communicators[i], members[i],
                                                 static_cast<int>(i), abandoned));
  } catch (const Unavailable& error) {
    why = error.what();
    links.clear();
  }
  return links;
}

}  // namespace muster::compute::cuda
