// A library in NCCL's place, for the functions that nccl.cc calls. Its ranks are threads of one
// process. As NCCL does, it answers at once with ncclInProgress, waits for all ranks, moves what a
// group asks for when all of them have asked, and tells nobody that a rank is gone.

#include "tests/unit/trainer/compute/cuda/runtime/fake_nccl.h"

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace {

using muster::compute::testing::FakeStream;

enum class Kind { send, receive, broadcast };
struct Call {
  Kind kind;
  const float* from;
  float* to;
  size_t count;
  int peer;
};
struct World;

}  // namespace

struct ncclComm {
  World* world;
  int rank;
  FakeStream* stream = nullptr;
  uint64_t groups = 0;  // asked for
  int pending = 0;
};

namespace {

struct World {
  int size;
  std::map<int, ncclComm*> ranks;
  std::map<uint64_t, std::map<int, std::vector<Call>>> groups;  // by number and rank
  bool failed = false;
};

std::mutex mutex;
std::map<uint64_t, std::unique_ptr<World>> worlds;
uint64_t ids = 0;
int communicators = 0;
thread_local int depth = 0;
thread_local ncclComm* group_of = nullptr;
thread_local std::vector<Call> group;

// Does what all ranks have asked for as their group of this number.
void move(World& world, std::map<int, std::vector<Call>>& calls) {
  for (auto& [rank, of_rank] : calls) {
    size_t broadcasts = 0;
    for (const Call& call : of_rank) {
      if (call.kind == Kind::send) {
        auto& others = calls.at(call.peer);
        const auto match = std::ranges::find_if(others, [&, from = rank](const Call& other) {
          return other.kind == Kind::receive && other.peer == from && other.from == nullptr;
        });
        if (match == others.end() || match->count != call.count) {
          world.failed = true;
          return;
        }
        std::copy_n(call.from, call.count, match->to);
        match->from = call.from;
      } else if (call.kind == Kind::broadcast) {
        const size_t number = broadcasts++;
        if (call.peer != rank) continue;
        for (auto& [to, of_other] : calls) {
          size_t before = number;
          for (const Call& other : of_other)
            if (other.kind == Kind::broadcast && before-- == 0 && to != rank)
              std::copy_n(call.from, call.count, other.to);
        }
      }
    }
  }
}

ncclResult_t add(ncclComm* communicator, Call call, cudaStream_t stream) {
  communicator->stream = reinterpret_cast<FakeStream*>(stream);
  group_of = communicator;
  group.push_back(call);
  return ncclInProgress;
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote error" : "an error";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(mutex);
  std::memset(id, 0, sizeof *id);
  ++ids;
  std::memcpy(id, &ids, sizeof ids);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const std::lock_guard lock(mutex);
  if (config->blocking != 0) return ncclInvalidArgument;
  uint64_t number = 0;
  std::memcpy(&number, &id, sizeof number);
  auto& world = worlds[number];
  if (!world) world = std::make_unique<World>(World{ranks, {}, {}});
  if (world->size != ranks || world->ranks.contains(rank) || rank >= ranks)
    return ncclInvalidArgument;
  *made = new ncclComm{world.get(), rank};
  world->ranks[rank] = *made;
  ++communicators;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  const std::lock_guard lock(mutex);
  const World& world = *communicator->world;
  *state = world.failed                                        ? ncclRemoteError
           : static_cast<int>(world.ranks.size()) < world.size ? ncclInProgress
                                                               : ncclSuccess;
  return ncclSuccess;
}

// Its kernels end, and nobody is told.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::lock_guard lock(mutex);
  for (auto& [number, calls] : communicator->world->groups) calls.erase(communicator->rank);
  if (communicator->stream) communicator->stream->busy -= communicator->pending;
  --communicators;
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--depth > 0 || group_of == nullptr) return ncclInProgress;
  const std::lock_guard lock(mutex);
  ncclComm* const mine = std::exchange(group_of, nullptr);
  World& world = *mine->world;
  const uint64_t number = mine->groups++;
  auto& calls = world.groups[number];
  calls[mine->rank] = std::exchange(group, {});
  ++mine->pending;
  ++mine->stream->busy;
  if (static_cast<int>(calls.size()) < world.size) return ncclInProgress;
  move(world, calls);
  for (const auto& [rank, of_rank] : calls) {
    ncclComm& one = *world.ranks.at(rank);
    --one.pending;
    --one.stream->busy;
  }
  world.groups.erase(number);
  return ncclInProgress;
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, {Kind::send, static_cast<const float*>(from), nullptr, count, peer}, stream);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, {Kind::receive, nullptr, static_cast<float*>(to), count, peer}, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(
      comm,
      {Kind::broadcast, static_cast<const float*>(from), static_cast<float*>(to), count, root},
      stream);
}

int count_communicators() {
  const std::lock_guard lock(mutex);
  return communicators;
}

void fail_all() {
  const std::lock_guard lock(mutex);
  for (auto& [number, world] : worlds) world->failed = true;
}
}
