#include "trainer/compute/cuda/engine_group.h"

#include <algorithm>

#include "trainer/compute/tree_sum.h"

namespace muster::compute::cuda {
namespace {

float* floats_of(Memory& memory) {
  return dynamic_cast<CudaMemory&>(memory).data();
}

Completion all_of(std::vector<Completion> each) {
  return Completion([each = std::move(each)]() mutable {
    for (Completion& one : each) one.wait();
  });
}

// Memory on several devices with the same content. It is read from the first.
class EqualMemory : public Memory {
 public:
  explicit EqualMemory(std::vector<Memory*> all) : all_(std::move(all)) {}

  size_t size() const override { return all_[0]->size(); }
  Completion read(Range range, std::span<float> to) const override {
    return all_[0]->read(range, to);
  }
  Completion write(Range range, std::span<const float> from) override {
    std::vector<Completion> each;
    for (Memory* memory : all_) each.push_back(memory->write(range, from));
    return all_of(std::move(each));
  }
  std::span<float> host_view() override { return {}; }

 private:
  const std::vector<Memory*> all_;
};

// Memory of which each device has a share; the shares are in order and cover it.
class SharedOutMemory : public Memory {
 public:
  SharedOutMemory(std::vector<Memory*> each, std::vector<Range> shares)
      : each_(std::move(each)), shares_(std::move(shares)) {}

  size_t size() const override { return each_[0]->size(); }
  Completion read(Range range, std::span<float> to) const override {
    return for_parts(range, [&](size_t i, Range part) {
      return each_[i]->read(part, to.subspan(part.begin - range.begin, part.size()));
    });
  }
  Completion write(Range range, std::span<const float> from) override {
    return for_parts(range, [&](size_t i, Range part) {
      return each_[i]->write(part, from.subspan(part.begin - range.begin, part.size()));
    });
  }
  std::span<float> host_view() override { return {}; }

 private:
  template <class Copy>
  Completion for_parts(Range range, Copy copy) const {
    std::vector<Completion> parts;
    for (size_t i = 0; i < shares_.size(); ++i) {
      const Range part{std::max(range.begin, shares_[i].begin),
                       std::min(range.end, shares_[i].end)};
      if (part.begin < part.end) parts.push_back(copy(i, part));
    }
    return all_of(std::move(parts));
  }

  const std::vector<Memory*> each_;
  const std::vector<Range> shares_;
};

}  // namespace

CudaEngineGroup::Member::Member(CudaEngine& made, std::unique_ptr<GpuLink> end, Range share,
                                int members, size_t slot_count)
    : engine(made),
      link(std::move(end)),
      inbox(made.gpu(), static_cast<int64_t>(share.size()) * (members - 1)),
      update(made.gpu(), made.layout(), share) {
  for (size_t i = 0; i < slot_count; ++i) slots.emplace_back(made.gpu(), made.layout().size());
}

CudaEngineGroup::CudaEngineGroup(std::span<CudaEngine* const> engines,
                                 std::vector<std::unique_ptr<GpuLink>> links,
                                 const Optimizer& optimizer)
    : optimizer_(optimizer),
      shares_(
          shard_ranges(optimizer.spec(), engines[0]->layout(), static_cast<int>(engines.size()))) {
  const size_t slot_count = optimizer.slot_names().size();
  std::vector<Memory*> parameters;
  for (size_t i = 0; i < engines.size(); ++i) {
    members_.emplace_back(*engines[i], std::move(links[i]), shares_[i],
                          static_cast<int>(engines.size()), slot_count);
    parameters.push_back(&engines[i]->parameters());
  }
  parameters_ = std::make_unique<EqualMemory>(parameters);
  for (size_t slot = 0; slot < slot_count; ++slot) {
    std::vector<Memory*> each;
    for (Member& member : members_) each.push_back(&member.slots[slot]);
    slots_.push_back(std::make_unique<SharedOutMemory>(each, shares_));
    slot_views_.push_back(slots_.back().get());
  }
}

// A child's sum comes to the place of its first leaf.
void CudaEngineGroup::add_up(size_t member, const std::vector<float*>& leaves) {
  const auto size = static_cast<int64_t>(shares_[member].size());
  const std::function<void(Subtree)> add = [&](Subtree node) {
    if (node.size() == 1) return;
    add(node.first());
    add(node.second());
    members_[member].engine.gpu().launch(
        Copy{1, size, leaves[static_cast<size_t>(node.second().begin)], size,
             leaves[static_cast<size_t>(node.begin)], size, true});
  };
  add({0, static_cast<int>(leaves.size())});
}

void CudaEngineGroup::ask(size_t index, const UpdateArguments& arguments) {
  Member& member = members_[index];
  Gpu& gpu = member.engine.gpu();
  const Range share = shares_[index];
  const auto size = static_cast<int64_t>(share.size());
  float* gradients = floats_of(member.engine.gradients());
  std::vector<float*> leaves;
  for (size_t from = 0; from < members_.size(); ++from) {
    const auto place = static_cast<int64_t>(from - (from > index ? 1 : 0));
    leaves.push_back(from == index ? gradients + share.begin : member.inbox.data() + place * size);
  }
  member.link->exchange(gradients, shares_, leaves);
  if (size > 0) {
    add_up(index, leaves);
    if (index > 0) gpu.launch(Copy{1, size, leaves[0], size, gradients + share.begin, size, false});
  }
  FlatBuffers buffers{floats_of(member.engine.parameters()), gradients, nullptr, nullptr, nullptr};
  set_slots(
      optimizer_, member.slots.size(), [&](size_t i) { return member.slots[i].data(); }, buffers);
  member.update.prepare(optimizer_, arguments, buffers);
  member.update.apply(buffers);
  member.link->share(buffers.parameters, shares_);
  gpu.wait();
}

void CudaEngineGroup::update(int engine, const UpdateArguments& arguments) {
  try {
    ask(static_cast<size_t>(engine), arguments);
  } catch (...) {
    for (Member& member : members_) member.link->abandon();
    throw;
  }
}

}  // namespace muster::compute::cuda
