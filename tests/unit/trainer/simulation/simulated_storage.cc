#include "tests/unit/trainer/simulation/simulated_storage.h"

#include <algorithm>

#include "common/error.h"

namespace muster::simulation {

void SimulatedStorage::operate() {
  if (std::exchange(failing_, false)) throw Unavailable("the storage fails");
  last_.reset();
}

uint64_t SimulatedStorage::open_generation(uint64_t above) {
  operate();
  return *generations_.insert(std::max(above, newest_generation()) + 1).first;
}

void SimulatedStorage::require_newest(uint64_t generation) {
  operate();
  if (*generations_.rbegin() > generation) throw Unavailable("superseded: nothing is published");
}

void SimulatedStorage::fence() {
  operate();
  temporaries_.clear();
}

std::optional<SimulatedStorage::Folder> SimulatedStorage::newest() {
  operate();
  for (auto it = published_.rbegin(); it != published_.rend(); ++it)
    if (static_cast<int>(it->second.files.size()) == shards_) return it->second;
  return std::nullopt;
}

std::string SimulatedStorage::begin() {
  operate();
  const std::string name = "t" + std::to_string(begun_++);
  temporaries_[name];
  return name;
}

void SimulatedStorage::write(const std::string& temporary, int shard, File file) {
  operate();
  const auto found = temporaries_.find(temporary);
  if (found == temporaries_.end()) throw Unavailable(temporary + " is gone");
  found->second[shard] = std::move(file);
}

void SimulatedStorage::publish(const std::string& temporary, Folder manifest) {
  operate();
  const auto found = temporaries_.find(temporary);
  if (found == temporaries_.end()) throw Unavailable(temporary + " is gone");
  if (manifest.generation < opened_)
    throw Violation("generation " + std::to_string(manifest.generation) + " publishes step " +
                    std::to_string(manifest.position.step) + " after generation " +
                    std::to_string(opened_) + " has begun");
  const Name name{manifest.generation, manifest.position.step};
  if (published_.contains(name)) throw Violation("a step is published twice in a generation");
  manifest.files = std::move(found->second);
  temporaries_.erase(found);
  published_[name] = std::move(manifest);
  last_ = name;
}

const SimulatedStorage::Folder* SimulatedStorage::find(uint64_t step, uint64_t generation) {
  operate();
  const auto found = published_.find({generation, step});
  return found == published_.end() ? nullptr : &found->second;
}

void SimulatedStorage::prune(int keep) {
  operate();
  while (static_cast<int>(published_.size()) > keep) {
    const auto oldest = std::find_if(published_.begin(), published_.end(), [&](const auto& one) {
      return !one.second.final && !leased_.contains(name_of(one.second));
    });
    if (oldest == published_.end()) return;
    published_.erase(oldest);
  }
}

const SimulatedStorage::Folder& SimulatedStorage::checkpoint(const std::string& name) {
  operate();
  for (const auto& [key, folder] : published_)
    if (name_of(folder) == name) return folder;
  throw Unavailable(name + " was pruned");
}

std::string SimulatedStorage::name_of(const Folder& folder) {
  return checkpoint::FolderName{folder.position.step, folder.generation}.text();
}

void SimulatedStorage::lose_last_rename() {
  if (!last_ || published_.at(*last_).final) return;
  published_.erase(*last_);
  last_.reset();
}

const SimulatedStorage::Folder* SimulatedStorage::final() const {
  for (const auto& [key, folder] : published_)
    if (folder.final) return &folder;
  return nullptr;
}

}  // namespace muster::simulation
