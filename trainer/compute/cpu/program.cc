#include "trainer/compute/cpu/program.h"

#include <cstdlib>
#include <memory>
#include <new>

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
  if (a.block.id != b.block.id || !(a.write || b.write)) return false;
  return a.share != b.share || a.share == Share::all;
}

}  // namespace

Block Arena::add(int64_t bytes) {
  offsets_.push_back(size_);
  // An odd number of lines between blocks of equal size keeps them from the same cache sets.
  size_ += (bytes + 63) / 64 * 64 + 64;
  return {static_cast<int>(offsets_.size()) - 1};
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

// Calls on_complete on the last thread that comes here.
void Program::tell(const Step& step, TeamThread thread, size_t phase) const {
  if (step.arrivals[phase].fetch_add(1) + 1 < thread.count) return;
  step.arrivals[phase] = 0;
  (*step.on_complete)(phases_[phase].complete);
}

}  // namespace muster::compute::cpu
