#include "tests/bench/collective/all_reduce.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/threads/doorbell.h"
#include "tests/bench/collective/twins.h"
#include "trainer/collective/shared_state.h"
#include "trainer/collective/wire_group.h"
#include "trainer/compute/tree_sum.h"

namespace muster::bench {

namespace {

using collective::SharedState;

constexpr double kBytes = 6e9;  // of all calls together
constexpr auto kMost = std::chrono::seconds(10);

std::unique_ptr<SharedState> make_state(size_t floats, uint64_t step) {
  SharedState::Shape shape;
  shape.members = shape.replicas = Meeting::kTwins;
  shape.floats = floats;
  return SharedState::make(shape, step, worthwhile_spins(Meeting::kTwins));
}

float value_of(int twin, size_t i) {
  return static_cast<float>(1 + twin) * static_cast<float>(1 + i % 1024);
}

void require(bool done) {
  if (!done) throw std::runtime_error("the other process is gone");
}

// One call on a state of two members that stands at `step`: a step of the trainer's, with a copy in
// place of the optimizer.
void reduce(const SharedState& state, compute::TreeSum& tree, std::span<const float* const> numbers,
            uint64_t step, int twin, bool logged) {
  const SharedState::Shape& shape = state.shape();
  require(state.contribute(step));
  require(state.wait([&] { return state.all_contributed(step); }, {}, kMost));
  for (size_t tile = shape.first_tile(twin); tile < shape.first_tile(twin + 1); ++tile) {
    const compute::Range range = shape.tile(tile);
    require(!logged || state.begin_tile(step, twin, tile));
    std::memcpy(state.parameters().data() + range.begin,
                tree.sum(numbers, range.begin, range.size()), range.size() * sizeof(float));
  }
  require(state.finish_slice(step, twin));
  require(state.wait([&] { return state.done(step); }, {}, kMost));
}

void copy_half(const SharedState& state, int twin, size_t own_block) {
  const SharedState::Shape& shape = state.shape();
  const auto at = [&](int member) {
    return std::min(shape.floats, shape.first_tile(member) * SharedState::kTile);
  };
  float here[SharedState::kTile];
  const size_t begin = at(twin);
  const size_t end = at(twin + 1);
  const std::span<float> sum = state.parameters();
  const std::span<const float> own = state.sum(static_cast<size_t>(twin));
  const std::span<const float> other = state.sum(static_cast<size_t>(1 - twin));
  for (size_t from = begin; from < end; from += own_block) {
    const size_t to = std::min(end, from + own_block);
    std::memcpy(&sum[from], &own[from], (to - from) * sizeof(float));
    for (size_t i = from; i < to; i += SharedState::kTile) {
      std::memcpy(here, &other[i], std::min(SharedState::kTile, to - i) * sizeof(float));
      asm volatile("" : : "r"(here) : "memory");  // as if somebody looked at them
    }
  }
}

}  // namespace

size_t repeats_of(size_t floats) {
  return static_cast<size_t>(std::max(30.0, kBytes / static_cast<double>(floats * sizeof(float))));
}

void fill(std::span<float> numbers, int twin) {
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = value_of(twin, i);
}

void check(std::span<const float> sum) {
  for (size_t i = 0; i < sum.size(); ++i)
    if (sum[i] != value_of(0, i) + value_of(1, i))
      throw std::runtime_error("the sum is wrong at " + std::to_string(i));
}

double shared_memory_seconds(size_t floats, bool logged) {
  uint64_t step = 1;
  const auto state = make_state(floats, step);
  return in_twins([&](int twin, Meeting& meeting) {
    compute::TreeSum tree(state->shape().nodes(), SharedState::kTile);
    const std::vector<const float*> numbers = {state->sum(0).data(), state->sum(1).data()};
    const double seconds =
        median_seconds(twin, meeting, repeats_of(floats),
                       {[&] { fill(state->sum(static_cast<size_t>(twin)), twin); },
                        [&] { reduce(*state, tree, numbers, step++, twin, logged); }});
    check(state->parameters());
    return seconds;
  });
}

double wire_seconds(size_t floats) {
  const collective::GroupShape shape{Meeting::kTwins, Meeting::kTwins};
  return in_twins([&](int twin, Meeting& meeting) {
    collective::WireGroup group(shape, twin, floats, "127.0.0.1", group::Identity());
    const collective::Session::Watch watch{{}, [] { return false; }};
    std::vector<std::string> endpoints(Meeting::kTwins, group.endpoint());
    endpoints[static_cast<size_t>(1 - twin)] = meeting.other(twin, group.endpoint());
    group.connect(endpoints, watch);
    uint64_t step = 1;
    compute::LossSums sums;
    sums.rows = 1;
    sums.weight = 1;
    const collective::Contribution contribution({&sums, 1});
    const double seconds = median_seconds(twin, meeting, repeats_of(floats),
                                          {[&] { fill(group.own(0), twin); },
                                           [&] { group.all_reduce(step++, contribution, watch); }});
    check(group.sum());
    meeting.barrier();  // before either hangs up
    return seconds;
  });
}

double copy_seconds(size_t floats) {
  const auto state = make_state(floats, 1);
  return in_twins([&](int twin, Meeting& meeting) {
    const auto prepare = [&] { fill(state->sum(static_cast<size_t>(twin)), twin); };
    const auto seconds = [&](size_t block) {
      return median_seconds(twin, meeting, repeats_of(floats),
                            {prepare, [&] { copy_half(*state, twin, block); }});
    };
    return std::min(seconds(SharedState::kTile), seconds(floats));
  });
}

}  // namespace muster::bench
