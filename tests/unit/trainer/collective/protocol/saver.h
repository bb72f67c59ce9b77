#pragma once

#include <optional>
#include <string>

#include "tests/unit/trainer/collective/protocol/process.h"

namespace muster::collective::protocol {

// Rank 0's writing of one checkpoint after the other: the order of loop::Checkpointer::save and
// checkpoint::Store::publish, one operation a turn.
class Saver {
 public:
  enum class Result { none, saved, failed, name_taken };

  Saver(World& world, int id) : world_(world), id_(id) {}

  bool idle() const { return !task_; }
  void begin(uint64_t generation, const State& state, bool final);
  Result result() const { return result_; }  // of the last task
  void act();

 private:
  enum class Next { find, begin, write, check, publish, prune };
  void step();
  void end(Result result);

  World& world_;
  const int id_;
  std::optional<SimulatedStorage::Folder> task_;
  Next next_ = Next::find;
  std::string temporary_;
  Result result_ = Result::none;
};

}  // namespace muster::collective::protocol
