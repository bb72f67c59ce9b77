#include "trainer/ps/shard/block_update.h"

#include <algorithm>
#include <bit>

#include "trainer/compute/aligned.h"
#include "trainer/compute/tree_sum.h"
#include "trainer/host/arithmetic.h"
#include "trainer/host/instruction_set.h"
#include "trainer/host/team.h"
#include "trainer/ps/shard/copy.h"

namespace muster::ps {

using compute::Range;
using host::TeamThread;

namespace {

// The number of floats of each buffer in a block: as many as fit into the second-level cache
// together with the other buffers.
constexpr size_t kBlock = 8192;

}  // namespace

struct BlockUpdate::Share {
  std::vector<compute::Floats> sums;  // a block for each level of the tree
  std::vector<std::span<float>> slots;
};

BlockUpdate::BlockUpdate(const compute::Optimizer& optimizer, int threads, bool rounded)
    : optimizer_(optimizer),
      arithmetic_(host::arithmetic()),
      rounding_(rounded ? &arithmetic_ : nullptr),
      shares_(static_cast<size_t>(std::max(1, threads))),
      team_(std::make_unique<host::Team>(std::max(1, threads), /*exclusive=*/false)) {
  for (Share& share : shares_) share.slots.resize(optimizer.slot_names().size());
}

BlockUpdate::~BlockUpdate() = default;

template <class Work>
void BlockUpdate::each_share(size_t gradients, bool together, const Work& work) {
  const auto levels = static_cast<size_t>(std::bit_width(gradients));
  for (Share& share : shares_)
    while (share.sums.size() < levels) share.sums.emplace_back(kBlock);
  if (!together || shares_.size() == 1) {
    const host::FlushSubnormals flush;  // like a team
    work(shares_[0], TeamThread{0, 1});
    return;
  }
  team_->run([&](TeamThread member) { work(shares_[static_cast<size_t>(member.index)], member); });
}

template <class Work>
void BlockUpdate::each_block(size_t floats, size_t gradients, bool together, const Work& work) {
  if (floats == 0) return;
  each_share(gradients, together, [&](Share& share, const TeamThread& member) {
    const auto size = static_cast<int64_t>(floats);
    const auto end = static_cast<size_t>(member.end(size, compute::ParameterLayout::kAlignment));
    auto begin = static_cast<size_t>(member.begin(size, compute::ParameterLayout::kAlignment));
    for (; begin < end; begin += kBlock) work(share, Range{begin, std::min(end, begin + kBlock)});
  });
}

void BlockUpdate::run(Range range, const compute::UpdateArguments& arguments,
                      const Buffers& buffers, bool together) {
  compute::UpdateArguments with_ratios = arguments;
  if (optimizer_.needs_whole_tensors()) {
    measure(range, arguments, buffers, together);
    with_ratios.ratios = ratios_;
  }
  each_block(range.size(), buffers.gradients.size(), together, [&](Share& share, Range block) {
    run_block(share, range, block, with_ratios, buffers);
  });
}

void BlockUpdate::measure(Range range, const compute::UpdateArguments& arguments,
                          const Buffers& buffers, bool together) {
  static_assert(compute::TensorRatios::kChunk <= kBlock);
  if (!measured_ || measured_->range() != range) {
    measured_.emplace(optimizer_.layout(), range);
    ratios_.assign(optimizer_.layout().tensors().size(), 1.0f);
  }
  each_share(buffers.gradients.size(), together, [&](Share& share, const TeamThread& member) {
    const auto chunks = static_cast<int64_t>(measured_->chunks());
    const auto of_chunk = [&](Range chunk) {
      const Range block{chunk.begin - range.begin, chunk.end - range.begin};
      return std::span(summed(share, block, buffers), block.size());
    };
    measured_->measure(
        {static_cast<size_t>(member.begin(chunks)), static_cast<size_t>(member.end(chunks))},
        optimizer_, arguments, range.begin, buffers.from, of_chunk, buffers.slots_from);
  });
  measured_->write(optimizer_, ratios_);
}

void BlockUpdate::sum(Gradients gradients, std::span<float> to, bool together) {
  each_block(to.size(), gradients.size(), together, [&](Share& share, Range block) {
    std::copy_n(sum_block(share, block, gradients, 0), block.size(), to.begin() + block.begin);
  });
}

void BlockUpdate::keep(compute::ConstPlacedFloats gradients, std::span<float> to) {
  std::ranges::copy(gradients.host(), to.begin());
}

const float* BlockUpdate::summed(Share& share, Range block, const Buffers& buffers) const {
  return buffers.sum.empty() ? sum_block(share, block, buffers.gradients, 0)
                             : buffers.sum.data() + block.begin;
}

// Returns the block's sum, which is in the gradients' own memory or in the buffer of `level`.
const float* BlockUpdate::sum_block(Share& share, Range block, Gradients gradients,
                                    size_t level) const {
  const auto size = static_cast<int64_t>(block.size());
  if (gradients.size() == 1) {
    const float* only = gradients[0].host().data() + block.begin;
    if (!rounding_) return only;
    rounding_->round_to_bfloat16(size, only, share.sums[level].data());
    return share.sums[level].data();
  }
  const compute::Subtree all{0, static_cast<int>(gradients.size())};
  const auto half = static_cast<size_t>(all.first().size());
  const float* left = sum_block(share, block, gradients.first(half), level);
  const float* right = sum_block(share, block, gradients.subspan(half), level + 1);
  float* both = share.sums[level].data();
  arithmetic_.add(size, left, right, both);
  return both;
}

// `block` counts from the range's beginning.
void BlockUpdate::run_block(Share& share, Range range, Range block,
                            const compute::UpdateArguments& arguments,
                            const Buffers& buffers) const {
  const size_t size = block.size();
  const std::span gradients(summed(share, block, buffers), size);
  const std::span<float> to = buffers.to.subspan(block.begin, size);
  copy_unless_same(buffers.from.subspan(block.begin, size), to);
  for (size_t slot = 0; slot < buffers.slots.size(); ++slot) {
    share.slots[slot] = buffers.slots[slot].subspan(block.begin, size);
    copy_unless_same(buffers.slots_from[slot].subspan(block.begin, size), share.slots[slot]);
  }
  optimizer_.apply({range.begin + block.begin, range.begin + block.end}, arguments, to, gradients,
                   share.slots);
  for (const compute::PlacedFloats& target : buffers.copies)
    give(to, target.part(block).host(), rounding_);
}

}  // namespace muster::ps
