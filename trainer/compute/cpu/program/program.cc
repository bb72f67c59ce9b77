#include "trainer/compute/cpu/program/program.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <utility>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace muster::compute::cpu {
namespace {

uint64_t ticks_now() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

bool conflict(const Access& a, const Access& b) {
  if (!(a.write || b.write)) return false;
  // A thread's shares of different blocks in the same memory lie at different places.
  if (a.block.begin != b.block.begin || a.block.end != b.block.end)
    return a.block.begin < b.block.end && b.block.begin < a.block.end;
  return a.share != b.share || a.share == Share::all;
}

// An odd number of lines between blocks of equal size keeps them from the same cache sets.
int64_t with_gap(int64_t bytes) {
  return (bytes + 63) / 64 * 64 + 64;
}

// Returns the lowest place for a block beside the blocks that are in use at the same time.
int64_t lowest_place(const Temporary& block,
                     const std::vector<std::pair<Temporary, Block>>& placed) {
  std::vector<Block> in_use;
  for (const auto& [other, place] : placed)
    if (block.first <= other.last && other.first <= block.last) in_use.push_back(place);
  std::ranges::sort(in_use, {}, &Block::begin);
  int64_t at = 0;
  for (const Block& other : in_use) {
    if (at + with_gap(block.bytes) <= other.begin) break;
    at = std::max(at, other.end);
  }
  return at;
}

}  // namespace

Block Arena::add(int64_t bytes) {
  const int64_t begin = size_;
  size_ += with_gap(bytes);
  return {begin, size_};
}

// The largest block is placed first.
std::vector<Block> Arena::add(std::span<const Temporary> blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](size_t i) { return blocks[i].bytes; });
  std::vector<std::pair<Temporary, Block>> placed;
  std::vector<Block> result(blocks.size());
  const int64_t begin = size_;
  for (const size_t i : order) {
    const int64_t at = lowest_place(blocks[i], placed);
    const Block block{at, at + with_gap(blocks[i].bytes)};
    placed.emplace_back(blocks[i], block);
    result[i] = {begin + block.begin, begin + block.end};
    size_ = std::max(size_, result[i].end);
  }
  return result;
}

Block Arena::add_pages(int64_t bytes) {
  size_ = (size_ + kPage - 1) / kPage * kPage;
  return add(bytes);
}

void Arena::allocate() {
  const size_t size = static_cast<size_t>(size_ < 64 ? 64 : size_);
  size_t room = size + kPage;
  memory_.reset(static_cast<char*>(std::calloc(room, 1)));
  if (!memory_) throw std::bad_alloc();
  void* begin = memory_.get();
  begin_ = static_cast<char*>(std::align(kPage, size, begin, room));
}

void Arena::Free::operator()(void* memory) const {
  std::free(memory);
}

void Program::add(std::string name, std::vector<Access> accesses, Work work) {
  bool barrier = false;
  for (const Access& access : accesses) {
    for (const Access& before : open_) barrier |= conflict(access, before);
  }
  if (barrier) open_.clear();
  open_.insert(open_.end(), accesses.begin(), accesses.end());
  phases_.push_back({std::move(name), std::move(work), barrier});
}

void Program::run(const Step& step, TeamThread thread, Team& team, uint64_t* ticks) const {
  uint64_t before = ticks == nullptr ? 0 : ticks_now();
  for (size_t i = 0; i < phases_.size(); ++i) {
    if (phases_[i].barrier) team.barrier(thread);
    if (ticks != nullptr) before = ticks_now();
    phases_[i].work(step, thread);
    if (ticks != nullptr) ticks[i] = ticks_now() - before;
    if (step.on_complete != nullptr && phases_[i].complete > 0) tell(step, thread, i);
  }
}

// The last thread that calls this function calls on_complete.
void Program::tell(const Step& step, TeamThread thread, size_t phase) const {
  if (step.arrivals[phase].fetch_add(1) + 1 < thread.count) return;
  step.arrivals[phase] = 0;
  (*step.on_complete)(phases_[phase].complete);
}

}  // namespace muster::compute::cpu
