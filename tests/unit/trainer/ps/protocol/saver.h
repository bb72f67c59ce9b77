#pragma once

#include <optional>
#include <string>

#include "tests/unit/trainer/ps/protocol/control_calls.h"

namespace muster::ps::protocol {

// Writes one checkpoint after the other, as rank 0 does: in the order of loop::Checkpointer::save
// and checkpoint::Store::publish, one operation in each turn.
class Saver {
 public:
  struct Task {
    SimulatedStorage::Folder manifest;
    std::vector<uint64_t> shard_steps;
    std::vector<int> serving;  // which ps has each shard
  };
  enum class Result { none, saved, failed, name_taken };

  Saver(World& world, int id) : world_(world), id_(id), calls_(world, id) {}

  bool idle() const { return !task_; }
  void begin(Task task);
  Result result() const { return result_; }  // of the last task

  bool ready() const;
  void act();
  bool receive(int stream, Message& message) { return calls_.receive(stream, message); }

 private:
  enum class Next { find, begin, write, wait, check, publish, prune };
  void step();

  World& world_;
  const int id_;
  ControlCalls calls_;
  std::optional<Task> task_;
  Next next_ = Next::find;
  std::string temporary_;
  Result result_ = Result::none;
};

}  // namespace muster::ps::protocol
