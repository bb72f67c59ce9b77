#include "trainer/compute/cuda/engine_group.h"

#include <algorithm>
#include <functional>

#include "common/error.h"
#include "trainer/compute/cuda/gpu_link.h"
#include "trainer/compute/tree_sum.h"

namespace muster::compute::cuda {
namespace {

float* floats_of(Memory& memory) {
  return memory.floats().address();
}

// Memory on several devices with the same content. It is read from the first device.
class EqualMemory : public Memory {
 public:
  explicit EqualMemory(std::vector<Memory*> all) : all_(std::move(all)) {}

  size_t size() const override { return all_[0]->size(); }
  Completion read(Range range, PlacedFloats to) const override { return all_[0]->read(range, to); }
  Completion write(Range range, ConstPlacedFloats from) override {
    std::vector<Completion> each;
    for (Memory* memory : all_) each.push_back(memory->write(range, from));
    return Completion([each = std::move(each)]() mutable {
      for (Completion& one : each) one.wait();
    });
  }
  PlacedFloats floats() override { return all_[0]->floats(); }

 private:
  const std::vector<Memory*> all_;
};

// Returns, for each of `devices` devices, the part of a layout that it adds up.
std::vector<Range> shares_of(size_t size, int devices) {
  constexpr size_t kGrain = ParameterLayout::kAlignment;
  const size_t grains = (size + kGrain - 1) / kGrain;
  const auto border = [&](int device) {
    return std::min(size,
                    grains * static_cast<size_t>(device) / static_cast<size_t>(devices) * kGrain);
  };
  std::vector<Range> shares;
  for (int device = 0; device < devices; ++device)
    shares.push_back({border(device), border(device + 1)});
  return shares;
}

}  // namespace

class CudaEngineLink : public EngineGroup::Link {
 public:
  CudaEngineLink(CudaEngineGroup& group, const LinkedDevices& devices)
      : group_(group),
        first_(static_cast<size_t>(devices.first)),
        shares_(shares_of(group.parameters().size(), devices.count)) {
    std::vector<Gpu*> gpus;
    for (size_t i = 0; i < group.members_.size(); ++i) {
      gpus.push_back(&group.members_[i].engine.gpu());
      inboxes_.emplace_back(*gpus[i],
                            static_cast<int64_t>(shares_[first_ + i].size()) * (devices.count - 1));
    }
    links_ = gpus[0]->link(gpus, devices);
  }

  void ask_sums(int engine) override {
    const auto index = static_cast<size_t>(engine), own = first_ + index;
    CudaEngine& computed = group_.members_[index].engine;
    const Range share = shares_[own];
    const auto size = static_cast<int64_t>(share.size());
    float* gradients = floats_of(computed.gradients());
    std::vector<float*> leaves;
    for (size_t from = 0; from < shares_.size(); ++from) {
      const auto place = static_cast<int64_t>(from - (from > own ? 1 : 0));
      leaves.push_back(from == own ? gradients + share.begin
                                   : inboxes_[index].data() + place * size);
    }
    guarded([&] {
      links_[index]->exchange(gradients, shares_, leaves);
      if (size > 0) {
        add_up(computed.gpu(), size, leaves);
        if (own > 0)
          computed.gpu().launch(
              Copy{1, size, leaves[0], size, gradients + share.begin, size, false});
      }
      links_[index]->share(gradients, shares_);
    });
  }

  void await_sums(int engine) override {
    guarded([&] { links_[static_cast<size_t>(engine)]->wait(); });
  }

  void update(int engine, const UpdateArguments& arguments) override {
    CudaEngineGroup::Member& member = group_.members_[static_cast<size_t>(engine)];
    FlatBuffers buffers{member.parameters.data(), floats_of(member.engine.gradients()), nullptr,
                        nullptr, nullptr};
    set_slots(
        group_.optimizer_, member.slots.size(), [&](size_t i) { return member.slots[i].data(); },
        buffers);
    member.update.prepare(group_.optimizer_, arguments, buffers);
    member.update.apply(buffers);
    member.engine.gpu().wait();
  }

  void abandon() noexcept override {
    for (const auto& link : links_) link->abandon();
  }

 private:
  // If `asked` throws, also ends the waits of all other threads.
  template <class Asked>
  void guarded(Asked asked) {
    try {
      asked();
    } catch (...) {
      abandon();
      throw;
    }
  }

  // A child's sum is written to the place of its first leaf.
  static void add_up(Gpu& gpu, int64_t size, const std::vector<float*>& leaves) {
    const std::function<void(Subtree)> add = [&](Subtree node) {
      if (node.size() == 1) return;
      add(node.first());
      add(node.second());
      gpu.launch(Copy{1, size, leaves[static_cast<size_t>(node.second().begin)], size,
                      leaves[static_cast<size_t>(node.begin)], size, true});
    };
    add({0, static_cast<int>(leaves.size())});
  }

  CudaEngineGroup& group_;
  const size_t first_;
  const std::vector<Range> shares_;  // one for each of all devices
  // For each of our devices: the others' gradients of its share.
  std::deque<GpuArray<float>> inboxes_;
  // Must be destroyed before the inboxes that they write to.
  std::vector<std::unique_ptr<GpuLink>> links_;
};

CudaEngineGroup::Member::Member(CudaEngine& made, size_t slot_count)
    : engine(made),
      parameters(made.gpu(), made.layout().size()),
      update(made.gpu(), made.layout(), {0, made.layout().size()}) {
  for (size_t i = 0; i < slot_count; ++i) slots.emplace_back(made.gpu(), made.layout().size());
}

CudaEngineGroup::CudaEngineGroup(std::span<CudaEngine* const> engines, const Optimizer& optimizer)
    : optimizer_(optimizer) {
  const size_t slot_count = optimizer.slot_names().size();
  std::vector<Memory*> parameters;
  for (CudaEngine* engine : engines)
    parameters.push_back(&members_.emplace_back(*engine, slot_count).parameters);
  parameters_ = std::make_unique<EqualMemory>(parameters);
  for (size_t slot = 0; slot < slot_count; ++slot) {
    std::vector<Memory*> each;
    for (Member& member : members_) each.push_back(&member.slots[slot]);
    slots_.push_back(std::make_unique<EqualMemory>(each));
    slot_views_.push_back(slots_.back().get());
  }
}

CudaEngineGroup::~CudaEngineGroup() {
  for (Member& member : members_) {
    if (&member.engine.parameters() != &member.parameters) continue;
    try {
      member.engine.use_own();
    } catch (const DeviceError&) {
      // The engine cannot be used any more.
    }
  }
}

std::vector<Memory*> CudaEngineGroup::state_of(int engine) {
  Member& member = members_[static_cast<size_t>(engine)];
  std::vector<Memory*> state{&member.parameters};
  for (CudaMemory& slot : member.slots) state.push_back(&slot);
  return state;
}

std::string CudaEngineGroup::make_link_id() {
  return members_.front().engine.gpu().make_link_id();
}

std::unique_ptr<EngineGroup::Link> CudaEngineGroup::link(const LinkedDevices& devices) {
  auto made = std::make_unique<CudaEngineLink>(*this, devices);
  for (Member& member : members_) member.engine.use(member.parameters, nullptr);
  return made;
}

}  // namespace muster::compute::cuda
