#include "trainer/compute/cuda/runtime/nccl.h"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/system/shared_library.h"
#include "trainer/compute/cuda/runtime/check.h"

namespace muster::compute::cuda {
namespace {

// The longest wait for the end of NCCL's kernels, and the longest wait for the rest of the
// shutdown.
constexpr std::chrono::seconds kEnd{2};
constexpr std::chrono::milliseconds kPatience{200};

// The library's functions. It stays open until the process ends: its threads may outlive the last
// communicator.
class Nccl {
 public:
  Nccl() {
    const SharedLibrary file{"GPU", "NCCL", "libnccl.so.2", /*stays_open=*/true};
    file.find(error_text, "ncclGetErrorString");
    file.find(make_id, "ncclGetUniqueId");
    file.find(make, "ncclCommInitRankConfig");
    file.find(state, "ncclCommGetAsyncError");
    file.find(abort, "ncclCommAbort");
    file.find(begin_group, "ncclGroupStart");
    file.find(end_group, "ncclGroupEnd");
    file.find(send, "ncclSend");
    file.find(receive, "ncclRecv");
    file.find(broadcast, "ncclBroadcast");
  }

  void expect_success(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return;
    const cudaError_t error = cudaGetLastError();
    if (is_of_hardware(error)) check(error, what);
    throw Unavailable(std::string(what) +
                      ": expected success of NCCL, found: " + error_text(result));
  }

  decltype(ncclGetErrorString)* error_text = nullptr;
  decltype(ncclGetUniqueId)* make_id = nullptr;
  decltype(ncclCommInitRankConfig)* make = nullptr;
  decltype(ncclCommGetAsyncError)* state = nullptr;
  decltype(ncclCommAbort)* abort = nullptr;
  decltype(ncclGroupStart)* begin_group = nullptr;
  decltype(ncclGroupEnd)* end_group = nullptr;
  decltype(ncclSend)* send = nullptr;
  decltype(ncclRecv)* receive = nullptr;
  decltype(ncclBroadcast)* broadcast = nullptr;
};

// The communicators of this process's members of a link. Each communicator is used by the thread of
// its GPU, until end() ends all of them.
class Communicators {
 public:
  // Makes the communicators; calls to them return at once.
  Communicators(const std::vector<NcclMember>& members, const LinkedDevices& devices)
      : members_(members), watch_(devices.watch), made_(members.size()) {
    ncclUniqueId id{};
    if (devices.id.size() != sizeof id)
      throw Unavailable("NCCL: expected an id of " + std::to_string(sizeof id) +
                        " bytes for the link, found " + std::to_string(devices.id.size()));
    std::memcpy(&id, devices.id.data(), sizeof id);
    try {
      make(id, devices);
    } catch (...) {
      end();
      throw;
    }
  }
  ~Communicators() { end(); }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  const Nccl& nccl() const { return nccl_; }
  const NcclMember& member(size_t index) const { return members_[index]; }
  ncclComm_t operator[](size_t index) const { return made_[index]; }
  void abandon() { abandoned_ = true; }
  void watch() const { watch_(); }

  // Returns the state of the communicator. Throws Unavailable if it has failed, or is abandoned.
  ncclResult_t look(size_t index) {
    if (abandoned_)
      throw Unavailable(
          "expected all GPUs of the group to go on, found that another one has failed");
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = nccl_.state(made_[index], &state);
    if (asked != ncclSuccess) state = asked;
    if (state == ncclSuccess || state == ncclInProgress) return state;
    abandoned_ = true;
    nccl_.expect_success(state, "NCCL");
    return state;
  }

 private:
  void make(const ncclUniqueId& id, const LinkedDevices& devices) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    nccl_.expect_success(nccl_.begin_group(), "ncclGroupStart");
    ncclResult_t failure = ncclSuccess;
    for (size_t i = 0; i < members_.size(); ++i) {
      check(cudaSetDevice(members_[i].ordinal), "cudaSetDevice");
      const ncclResult_t result =
          nccl_.make(&made_[i], devices.count, id, devices.first + static_cast<int>(i), &config);
      if (result != ncclSuccess && result != ncclInProgress) failure = result;
    }
    const ncclResult_t ended = nccl_.end_group();
    if (failure == ncclSuccess && ended != ncclInProgress) failure = ended;
    nccl_.expect_success(failure, "ncclCommInitRankConfig");
    for (size_t i = 0; i < members_.size(); ++i) {
      while (look(i) == ncclInProgress) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        watch_();
      }
    }
  }

  // Aborts all communicators at the same time, because NCCL may wait for the others of a process. A
  // process that still needs data from this process repeats the step. NCCL may also wait until
  // other processes abort their communicators; if NCCL's kernels have ended, we do not wait for
  // that.
  void end() noexcept {
    std::vector<std::future<void>> ended;
    for (size_t i = 0; i < made_.size(); ++i) {
      if (made_[i] == nullptr) continue;
      std::packaged_task<void()> task(
          [abort = nccl_.abort, communicator = made_[i], ordinal = members_[i].ordinal] {
            cudaSetDevice(ordinal);
            abort(communicator);
          });
      ended.push_back(task.get_future());
      std::thread(std::move(task)).detach();
    }
    const auto begun = std::chrono::steady_clock::now();
    const auto have_ended = [&] {
      return std::ranges::all_of(ended, [](const std::future<void>& one) {
        return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
      });
    };
    while (!have_ended()) {
      const auto passed = std::chrono::steady_clock::now() - begun;
      if (!is_busy() && passed > kPatience) return;
      if (passed > kEnd) {
        log::error(
            "NCCL: kernels that were to be aborted go on: this process ends, so that a new one can "
            "go on in its place (synchronization.nccl: never does without NCCL)");
        std::_Exit(kHung);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  bool is_busy() const {
    return std::ranges::any_of(members_, [](const NcclMember& member) {
      return cudaStreamQuery(member.stream) == cudaErrorNotReady;
    });
  }

  const Nccl nccl_;
  const std::vector<NcclMember> members_;
  const std::function<void()> watch_;
  std::vector<ncclComm_t> made_;
  std::atomic<bool> abandoned_{false};
};

class NcclLink : public GpuLink {
 public:
  NcclLink(std::shared_ptr<Communicators> all, size_t index, size_t rank)
      : all_(std::move(all)), index_(index), rank_(rank), member_(all_->member(index)) {}

  void exchange(const float* from, std::span<const Range> parts,
                std::span<float* const> to) override {
    const size_t own = parts[rank_].size();
    together([&](const Nccl& nccl, ncclComm_t communicator, auto call) {
      for (size_t other = 0; other < parts.size(); ++other) {
        if (other == rank_) continue;
        const Range part = parts[other];
        const int peer = static_cast<int>(other);
        if (part.size() > 0)
          call(nccl.send(from + part.begin, part.size(), ncclFloat32, peer, communicator,
                         member_.stream),
               "ncclSend");
        if (own > 0)
          call(nccl.receive(to[other], own, ncclFloat32, peer, communicator, member_.stream),
               "ncclRecv");
      }
    });
  }

  void share(float* values, std::span<const Range> parts) override {
    together([&](const Nccl& nccl, ncclComm_t communicator, auto call) {
      for (size_t owner = 0; owner < parts.size(); ++owner) {
        float* part = values + parts[owner].begin;
        if (parts[owner].size() > 0)
          call(nccl.broadcast(part, part, parts[owner].size(), ncclFloat32, static_cast<int>(owner),
                              communicator, member_.stream),
               "ncclBroadcast");
      }
    });
  }

  void wait() override {
    check(cudaSetDevice(member_.ordinal), "cudaSetDevice");
    for (;;) {
      const cudaError_t state = cudaStreamQuery(member_.stream);
      if (state != cudaErrorNotReady) check(state, "cudaStreamQuery");
      look();  // NCCL's kernels also end when they are aborted
      if (state == cudaSuccess) return;
      std::this_thread::yield();
    }
  }

  void abandon() noexcept override { all_->abandon(); }

 private:
  // The calls of a group are started together. The group is ended even if a call fails. The first
  // call of a kind waits for all members.
  template <class Calls>
  void together(Calls calls) {
    const Nccl& nccl = all_->nccl();
    check(cudaSetDevice(member_.ordinal), "cudaSetDevice");
    look();
    nccl.expect_success(nccl.begin_group(), "ncclGroupStart");
    ncclResult_t failure = ncclSuccess;
    const char* failed = "";
    calls(nccl, (*all_)[index_], [&](ncclResult_t result, const char* what) {
      if (result == ncclSuccess || result == ncclInProgress || failure != ncclSuccess) return;
      failure = result;
      failed = what;
    });
    const ncclResult_t ended = nccl.end_group();
    nccl.expect_success(failure, failed);
    if (ended != ncclInProgress) nccl.expect_success(ended, "ncclGroupEnd");
    while (look() == ncclInProgress) std::this_thread::yield();
  }

  ncclResult_t look() {
    const ncclResult_t state = all_->look(index_);
    all_->watch();
    return state;
  }

  const std::shared_ptr<Communicators> all_;
  const size_t index_;  // our member's index among this process's members
  const size_t rank_;   // our member's index among all members
  const NcclMember member_;
};

}  // namespace

void require_nccl() {
  static_cast<void>(Nccl());
}

std::string make_nccl_id() {
  const Nccl nccl;
  ncclUniqueId id{};
  nccl.expect_success(nccl.make_id(&id), "ncclGetUniqueId");
  return {reinterpret_cast<const char*>(&id), sizeof id};
}

std::vector<std::unique_ptr<GpuLink>> link_by_nccl(const std::vector<NcclMember>& members,
                                                   const LinkedDevices& devices) {
  for (size_t i = 1; i < members.size(); ++i)
    if (members[i].ordinal == members[0].ordinal)
      throw Unavailable("NCCL: expected a GPU for each device of the process, found " +
                        std::to_string(members.size()) + " devices on fewer GPUs");
  const auto all = std::make_shared<Communicators>(members, devices);
  std::vector<std::unique_ptr<GpuLink>> links;
  for (size_t i = 0; i < members.size(); ++i)
    links.push_back(std::make_unique<NcclLink>(all, i, static_cast<size_t>(devices.first) + i));
  return links;
}

}  // namespace muster::compute::cuda
