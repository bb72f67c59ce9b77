#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/trainer/collective/protocol/setting.h"
#include "tests/unit/trainer/simulation/simulated_storage.h"
#include "trainer/collective/shared_state.h"
#include "trainer/compute/optimizer.h"
#include "trainer/loop/batches/workload.h"

namespace muster::collective::protocol {

// Parameters and slots, and where training stands with them.
struct State {
  checkpoint::Position position;
  std::vector<compute::Floats> buffers;
  std::vector<std::span<float>> slots() { return {buffers.begin() + 1, buffers.end()}; }
};

// The work of a simulated job, and what each generation's steps must come to: the gradient of a
// batch is a function of which it is and of the bits of the parameters, so that a step lost, made
// twice or of torn parameters shows in all that follows. What a generation begins with must be what
// an earlier one, a checkpoint or the beginning left; from there on one right result follows from
// the other.
class Books {
 public:
  static constexpr uint64_t kEpochs = 2;

  explicit Books(const Setting& setting);

  SharedState::Shape shape(int members, int replicas) const;
  const compute::Optimizer& optimizer() const { return *optimizer_; }
  loop::Workload workload(int replicas) const;
  State initial() const;
  State empty() const;

  // The sum under a node of the step's replicas, and what a replica's rows come to.
  compute::Floats gradient(const checkpoint::Position& position, int replicas,
                           compute::Subtree node, std::span<const float> parameters) const;
  compute::LossSums sums(const checkpoint::Position& position, int replicas, int replica) const;
  compute::UpdateArguments arguments(uint64_t step, const compute::LossSums& all) const;
  void advance(State& state, int replicas) const;

  // Each throws Violation where something is not what it must be; `who` names it.
  // A member of a generation has its first state, which is `kept` from an earlier one, or else from
  // the checkpoint of that generation, or from the beginning.
  void entered(const std::string& who, uint64_t generation, int replicas, const State& state,
               bool kept, std::optional<uint64_t> checkpoint);
  // A member has the state after one more step.
  void stepped(const std::string& who, uint64_t generation, const State& state);
  // A state of a generation, that somebody says.
  void check(const std::string& who, uint64_t generation, const State& state) const;
  void check_folder(const SimulatedStorage::Folder& folder) const;
  // All batches are in it, each once.
  void check_final(const SimulatedStorage::Folder& final) const;

 private:
  struct Moment {
    State state;
    std::vector<std::pair<uint64_t, uint64_t>> trained;  // epoch and batch, in order
  };
  using Key = std::pair<uint64_t, uint64_t>;  // generation and step
  const Moment& moment(const std::string& who, Key key) const;
  static void compare(const std::string& who, const State& expected, const State& found);

  const Setting setting_;
  compute::ParameterLayout layout_;
  std::unique_ptr<compute::Optimizer> optimizer_;
  std::map<Key, Moment> moments_;
  std::map<uint64_t, int> replicas_;  // of a generation
};

}  // namespace muster::collective::protocol
