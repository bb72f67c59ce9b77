#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/compute/engine.h"
#include "trainer/host/team.h"

namespace muster::compute::cpu {

using host::Team;
using host::TeamThread;

// The data that one run of a program works on.
struct Step {
  const Batch* batch = nullptr;
  int64_t rows = 0;
  bool training = false;
  float* parameters = nullptr;
  float* gradients = nullptr;
  // Set only by train(): the rule of each tensor of the layout, the slots of its formula, and the
  // moving average. Null if only gradients are computed.
  const UpdateRule* rules = nullptr;
  float* slots[2] = {nullptr, nullptr};
  float* average = nullptr;
  // Set only by compute_gradients() with a callback: the callback, and for each phase the number of
  // threads that have finished it.
  const Engine::OnComplete* on_complete = nullptr;
  std::atomic<int>* arrivals = nullptr;
};

// A block of the arena, by its bytes [begin, end). Its memory exists once the program is built.
struct Block {
  int64_t begin = -1, end = -1;
  explicit operator bool() const { return begin >= 0; }
};

// A block that is in use from one moment to another, both included. Blocks that are never in use at
// the same time may share memory.
struct Temporary {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

// Blocks of one allocation, zero at start, aligned to cache lines or to pages. A large allocation
// (M_MMAP_THRESHOLD and more) is mapped, not cleared. Then memory that nobody has written costs
// neither space nor time, for example rows that no batch has, and the blocks for training when
// there is no training.
class Arena {
 public:
  static constexpr int64_t kPage = 4096;

  Block add(int64_t bytes);
  Block add_pages(int64_t bytes);
  // Adds blocks that share memory where they can; returns them in the same order. Their memory is
  // zero only at the start.
  std::vector<Block> add(std::span<const Temporary> blocks);
  void allocate();
  int64_t size() const { return size_; }  // in bytes
  float* floats(Block block) const { return static_cast<float*>(at(block)); }
  int32_t* integers(Block block) const { return static_cast<int32_t*>(at(block)); }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  void* at(Block block) const { return begin_ + block.begin; }

  int64_t size_ = 0;
  std::unique_ptr<char, Free> memory_;
  char* begin_ = nullptr;  // the first page of the allocation
};

// The part of a block that a thread touches in a phase: its share of the columns (of the value that
// the block belongs to), its share of the rows, a part of its own, or anything.
enum class Share { columns, rows, own, all };

struct Access {
  Block block;
  Share share = Share::all;
  bool write = false;
};
inline Access reads(Block block, Share share) {
  return {block, share, false};
}
inline Access writes(Block block, Share share) {
  return {block, share, true};
}

using Work = std::function<void(const Step&, TeamThread)>;

// A list of phases that every thread runs in order. There is a barrier before a phase only if the
// phase touches data that another thread may have touched since the last barrier.
class Program {
 public:
  void add(std::string name, std::vector<Access> accesses, Work work);
  // Declares that gradients [0, end) are complete when all threads have finished the last phase
  // added.
  void completes(size_t end) { phases_.back().complete = end; }
  void run(const Step& step, TeamThread thread, Team& team, uint64_t* ticks) const;

  size_t size() const { return phases_.size(); }
  const std::string& name(size_t phase) const { return phases_[phase].name; }

 private:
  struct Phase {
    std::string name;
    Work work;
    bool barrier = false;
    size_t complete = 0;  // floats of the gradients; 0: as many as before
  };
  void tell(const Step& step, TeamThread thread, size_t phase) const;

  std::vector<Phase> phases_;
  std::vector<Access> open_;  // accesses since the last barrier
};

}  // namespace muster::compute::cpu
