#pragma once

#include <optional>
#include <string>

#include "tests/unit/trainer/simulation/world.h"

namespace muster::simulation {

// Writes one checkpoint after the other, as rank 0 does: in the order of loop::Checkpointer::save
// and checkpoint::Store::publish, one operation in each turn.
class Saver {
 public:
  enum class Result { none, saved, failed, name_taken };

  Saver(World& world, int id) : world_(world), id_(id) {}
  virtual ~Saver() = default;

  bool idle() const { return !folder_; }
  Result result() const { return result_; }  // of the last folder
  bool ready() const { return folder_ && !(next_ == Next::write && waits()); }
  void act();

 protected:
  void begin(SimulatedStorage::Folder folder);
  // Writes the folder's files, or makes others write them. Called again until it returns true: all
  // are written. Throws Unavailable.
  virtual bool write(const SimulatedStorage::Folder& folder, const std::string& temporary) = 0;
  virtual bool waits() const { return false; }  // write() waits for others

 private:
  enum class Next { find, begin, write, check, publish, prune };
  void step();
  void end(Result result);

  World& world_;
  const int id_;
  std::optional<SimulatedStorage::Folder> folder_;
  Next next_ = Next::find;
  std::string temporary_;
  Result result_ = Result::none;
};

}  // namespace muster::simulation
