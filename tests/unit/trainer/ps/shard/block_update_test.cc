#include "trainer/ps/shard/block_update.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/unit/trainer/extended.h"
#include "tests/unit/trainer/ps/shard/update_inputs.h"
#include "trainer/compute/aligned.h"

namespace muster::ps {
namespace {

using compute::Floats;
using compute::Range;

// Returns tensors of several chunks and of less than one; some cases have more shards than tensors.
compute::ParameterLayout layout() {
  std::vector<compute::ParameterTensor> tensors(4);
  const char* names[] = {"first/kernel", "first/bias", "second/kernel", "frozen"};
  const std::vector<int64_t> shapes[] = {{90, 70}, {70}, {70, 33}, {21}};
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].name = names[i];
    tensors[i].shape = shapes[i];
  }
  tensors[1].weight_decay_multiplier = 0.0f;
  tensors[0].regularized = tensors[2].regularized = true;
  tensors[3].segment = compute::Segment::frozen;
  return compute::ParameterLayout(tensors);
}

struct State {
  Floats parameters;
  std::vector<Floats> slots;
  bool operator==(const State&) const = default;
};

// Returns the gradients of three members for an update.
std::vector<Floats> gradients(const compute::ParameterLayout& layout, uint64_t t) {
  std::vector<Floats> all;
  for (const double pace : {0.3, 0.7, 1.1})
    all.push_back(wave(layout, pace * static_cast<double>(t)));
  return all;
}

void advance_whole(const compute::Optimizer& optimizer, State& state, uint64_t t) {
  const std::vector<Floats> parts = gradients(optimizer.layout(), t);
  Floats sum(parts[0].size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = (parts[0][i] + parts[1][i]) + parts[2][i];
  const std::vector<std::span<float>> slots(state.slots.begin(), state.slots.end());
  optimizer.apply({0, sum.size()}, arguments(t), state.parameters, sum, slots);
}

// Updates from one memory to another, like a shard that keeps the previous version.
void advance(BlockUpdate& update, State& state, Range range, uint64_t t,
             const compute::ParameterLayout& layout, bool sum_first) {
  const std::vector<Floats> all = gradients(layout, t);
  std::vector<compute::ConstPlacedFloats> parts;
  for (const Floats& one : all) parts.push_back(std::span(one).subspan(range.begin, range.size()));
  const State before = state;
  std::vector<std::span<const float>> slots_from;
  std::vector<std::span<float>> slots;
  for (size_t i = 0; i < state.slots.size(); ++i) {
    slots_from.push_back(std::span(before.slots[i]).subspan(range.begin, range.size()));
    slots.push_back(std::span(state.slots[i]).subspan(range.begin, range.size()));
  }
  Floats copy(range.size()), sum(range.size());
  const std::vector<compute::PlacedFloats> copies{copy};
  BlockUpdate::Buffers buffers;
  buffers.from = std::span(before.parameters).subspan(range.begin, range.size());
  buffers.to = std::span(state.parameters).subspan(range.begin, range.size());
  buffers.slots_from = slots_from;
  buffers.slots = slots;
  buffers.gradients = parts;
  buffers.copies = copies;
  if (sum_first) {
    update.sum(parts, sum, true);
    buffers.sum = sum;
  }
  update.run(range, arguments(t), buffers, true);
  EXPECT_TRUE(std::ranges::equal(copy, buffers.to));
}

TEST(BlockUpdate, HasTheSameBitsForAnyNumberOfShardsAndThreads) {
  const compute::ParameterLayout tensors = layout();
  for (const compute::OptimizerSpec& spec :
       {compute::OptimizerSpec{compute::Sgd{0.9f, true}}, compute::OptimizerSpec{compute::AdamW{}},
        compute::OptimizerSpec{compute::Lamb{}}, extended(compute::Sgd{}),
        extended(compute::RmsProp{})}) {
    const auto optimizer = compute::Optimizer::create(spec, tensors);
    State start{wave(tensors, 1.7), {}};
    start.slots.assign(optimizer->slot_names().size(), Floats(tensors.size()));
    State expected = start;
    for (uint64_t t = 1; t <= 3; ++t) advance_whole(*optimizer, expected, t);
    EXPECT_FALSE(expected == start);
    for (const int shards : {1, 2, 5})
      for (const int threads : {1, 3})
        for (const bool sum_first : {false, true}) {
          State found = start;
          for (const Range range : shard_ranges(spec, tensors, shards)) {
            BlockUpdate update(*optimizer, threads);
            for (uint64_t t = 1; t <= 3; ++t) advance(update, found, range, t, tensors, sum_first);
          }
          EXPECT_TRUE(found == expected) << "optimizer " << spec.kind.index() << ", " << shards
                                         << " shards, " << threads << " threads";
        }
  }
}

TEST(BlockUpdate, RefusesAPartOfATensorThatIsNeededWhole) {
  const compute::ParameterLayout tensors = layout();
  for (const compute::OptimizerSpec& spec :
       {compute::OptimizerSpec{compute::Lamb{}}, extended(compute::Adam{})}) {
    const auto optimizer = compute::Optimizer::create(spec, tensors);
    State state{wave(tensors, 1.7), {}};
    state.slots.assign(optimizer->slot_names().size(), Floats(tensors.size()));
    BlockUpdate update(*optimizer, 1);
    EXPECT_THROW(advance(update, state, {0, 70}, 1, tensors, false), Invalid);
  }
}

}  // namespace
}  // namespace muster::ps
