#include "tests/unit/trainer/collective/protocol/saver.h"

#include <utility>

namespace muster::collective::protocol {

void Saver::begin(uint64_t generation, const State& state, bool final) {
  SimulatedStorage::Folder folder;
  folder.generation = generation;
  folder.position = state.position;
  folder.final = final;
  folder.files[0] = {state.position.step, state.buffers[0], {state.buffers[1]}};
  job_.books().check_folder(folder);
  simulation::Saver::begin(std::move(folder));
}

bool Saver::write(const SimulatedStorage::Folder& folder, const std::string& temporary) {
  job_.storage().write(temporary, 0, folder.files.at(0));
  return true;
}

}  // namespace muster::collective::protocol
