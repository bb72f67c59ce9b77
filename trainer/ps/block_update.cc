#include "trainer/ps/block_update.h"

#include <algorithm>

#include "trainer/compute/cpu/kernels.h"
#include "trainer/compute/cpu/team.h"
#include "trainer/ps/copy.h"

namespace muster::ps {

using compute::Range;
using compute::cpu::Member;

namespace {

// Floats: of each buffer as much as stays in the second-level cache with all the others.
constexpr size_t kBlock = 8192;

}  // namespace

struct BlockUpdate::Share {
  std::vector<float> sum;
  std::vector<std::span<float>> slots;
};

BlockUpdate::BlockUpdate(const compute::Optimizer& optimizer, int threads)
    : optimizer_(optimizer),
      shares_(static_cast<size_t>(std::max(1, threads))),
      team_(std::make_unique<compute::cpu::Team>(std::max(1, threads), /*exclusive=*/false)) {
  for (Share& share : shares_) {
    share.sum.resize(kBlock);
    share.slots.resize(optimizer.slot_names().size());
  }
}

BlockUpdate::~BlockUpdate() = default;
BlockUpdate::BlockUpdate(BlockUpdate&&) noexcept = default;

void BlockUpdate::run(Range range, const compute::UpdateArguments& arguments,
                      const Buffers& buffers, bool together) {
  if (range.size() == 0) return;
  if (!together || shares_.size() == 1) {
    const compute::cpu::FlushSubnormals flush;  // as a team does
    run_share(shares_[0], {0, 1}, range, arguments, buffers);
    return;
  }
  team_->run([&](Member member) {
    run_share(shares_[static_cast<size_t>(member.index)], member, range, arguments, buffers);
  });
}

void BlockUpdate::run_share(Share& share, const Member& member, Range range,
                            const compute::UpdateArguments& arguments,
                            const Buffers& buffers) const {
  const auto size = static_cast<int64_t>(range.size());
  const auto end = static_cast<size_t>(member.end(size, compute::ParameterLayout::kAlignment));
  auto begin = static_cast<size_t>(member.begin(size, compute::ParameterLayout::kAlignment));
  for (; begin < end; begin += kBlock)
    run_block(share, range, {begin, std::min(end, begin + kBlock)}, arguments, buffers);
}

// `block` counts from the range's beginning.
void BlockUpdate::run_block(Share& share, Range range, Range block,
                            const compute::UpdateArguments& arguments,
                            const Buffers& buffers) const {
  const size_t size = block.size();
  std::span<const float> gradients = buffers.gradients[0].subspan(block.begin, size);
  if (buffers.gradients.size() > 1) {
    float* sum = share.sum.data();
    const float* first = gradients.data();
    const float* second = buffers.gradients[1].data() + block.begin;
    for (size_t i = 0; i < size; ++i) sum[i] = first[i] + second[i];
    for (size_t rank = 2; rank < buffers.gradients.size(); ++rank) {
      const float* more = buffers.gradients[rank].data() + block.begin;
      for (size_t i = 0; i < size; ++i) sum[i] += more[i];
    }
    gradients = std::span(sum, size);
  }
  const std::span<float> to = buffers.to.subspan(block.begin, size);
  copy_unless_same(buffers.from.subspan(block.begin, size), to);
  for (size_t slot = 0; slot < buffers.slots.size(); ++slot) {
    share.slots[slot] = buffers.slots[slot].subspan(block.begin, size);
    copy_unless_same(buffers.slots_from[slot].subspan(block.begin, size), share.slots[slot]);
  }
  optimizer_.apply({range.begin + block.begin, range.begin + block.end}, arguments, to, gradients,
                   share.slots);
  for (const std::span<float> target : buffers.copies)
    copy_unless_same(to, target.subspan(block.begin, size));
}

}  // namespace muster::ps
