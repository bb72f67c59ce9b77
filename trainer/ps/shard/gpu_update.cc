#include "trainer/ps/shard/gpu_update.h"

#include <algorithm>

#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/compute/tensor_ratios.h"

namespace muster::ps {

namespace cuda = compute::cuda;
using compute::PlacedFloats;
using compute::Range;

namespace {

int64_t checked_size(Range range) {
  const auto size = static_cast<int64_t>(range.size());
  if (size < cuda::kMostNumbers) return size;
  throw Invalid("expected a shard of fewer than 2^31 floats on a GPU, found " +
                    std::to_string(size) + ": use more ps",
                kBadConfig);
}

std::vector<Range> frozen_in(const compute::ParameterLayout& layout, Range range) {
  std::vector<Range> frozen;
  for (const compute::ParameterTensor& tensor : layout.tensors()) {
    const size_t begin = std::max(tensor.range().begin, range.begin);
    const size_t end = std::min(tensor.range().end, range.end);
    if (tensor.segment == compute::Segment::frozen && begin < end)
      frozen.push_back({begin - range.begin, end - range.begin});
  }
  return frozen;
}

}  // namespace

GpuUpdate::GpuUpdate(cuda::Gpu& gpu, std::shared_ptr<GpuFloats> memory,
                     const compute::Optimizer& optimizer, Range range, bool rounded)
    : gpu_(gpu),
      memory_(std::move(memory)),
      optimizer_(optimizer),
      rounded_(rounded),
      frozen_(frozen_in(optimizer.layout(), range)),
      update_(gpu, optimizer.layout(), range),
      sum_(gpu, checked_size(range)) {
  if (optimizer.needs_whole_tensors())
    // Throws if the range cuts a tensor.
    static_cast<void>(compute::TensorRatios(optimizer.layout(), range));
}

void* GpuFloats::allocate(size_t bytes) {
  try {
    return gpu_->allocate_shared(bytes);
  } catch (const Unavailable& error) {
    throw DeviceError(error.what(), /*lost=*/false);
  }
}

// Only one sum is under way at a time, because its addresses are needed until the GPU has finished.
void GpuUpdate::ask_for_sum(Gradients gradients, float* to) {
  const auto count = static_cast<int64_t>(gradients.size());
  if (count > room_) {
    room_ = std::max(2 * room_, count);
    from_ = std::make_unique<cuda::HostArray<const float*>>(gpu_, room_);
  }
  std::ranges::transform(gradients, from_->data(), [](const auto& one) { return one.address(); });
  gpu_.launch(
      cuda::SumTree{static_cast<int64_t>(gradients[0].size()), count, from_->data(), to, rounded_});
}

void GpuUpdate::ask_for_copy(std::span<const float> from, PlacedFloats to) {
  if (from.data() != to.address()) gpu_.upload(to.address(), from.data(), from.size_bytes());
}

void GpuUpdate::ask_for_frozen(std::span<const float> from, PlacedFloats to) {
  for (const Range one : frozen_) ask_for_copy(from.subspan(one.begin, one.size()), to.part(one));
}

void GpuUpdate::run(Range range, const compute::UpdateArguments& arguments, const Buffers& buffers,
                    bool) {
  if (range.size() == 0) return;
  const float* gradients = buffers.sum.data();
  if (buffers.sum.empty()) {
    const bool only = buffers.gradients.size() == 1 && !rounded_;
    gradients = only ? buffers.gradients[0].address() : sum_.data();
    if (!only) ask_for_sum(buffers.gradients, sum_.data());
  }
  for (size_t slot = 0; slot < buffers.slots.size(); ++slot)
    ask_for_copy(buffers.slots_from[slot], buffers.slots[slot]);
  // An update reads the parameters where they are and writes them to the first member as well.
  // Padding is zero everywhere. An optimizer's measurements before the update are in the memory for
  // the update's result.
  Copies copies = buffers.copies;
  const float* before = nullptr;
  float* delivered = nullptr;
  if (optimizer_.needs_whole_tensors()) {
    ask_for_copy(buffers.from, buffers.to);
  } else {
    ask_for_frozen(buffers.from, buffers.to);
    before = buffers.from.data() - range.begin;
    if (!rounded_ && !copies.empty()) {
      ask_for_frozen(buffers.from, copies[0]);
      delivered = copies[0].address() - range.begin;
      copies = copies.subspan(1);
    }
  }
  // The pieces to update are counted from the layout's beginning.
  cuda::FlatBuffers flat{buffers.to.data() - range.begin, gradients - range.begin, nullptr, nullptr,
                         nullptr};
  cuda::set_slots(
      optimizer_, buffers.slots.size(),
      [&](size_t slot) { return buffers.slots[slot].data() - range.begin; }, flat);
  update_.prepare(optimizer_, arguments, flat);
  update_.apply(flat, before, delivered);
  if (!rounded_) {
    for (const PlacedFloats& copy : copies) ask_for_copy(buffers.to, copy);
  } else if (!copies.empty()) {
    gpu_.wait();
    const compute::ConstPlacedFloats after = buffers.to;
    for (const PlacedFloats& copy : copies) ask_for_sum({&after, 1}, copy.address());
  }
  gpu_.wait();
}

void GpuUpdate::sum(Gradients gradients, std::span<float> to, bool) {
  if (to.empty()) return;
  ask_for_sum(gradients, to.data());
  gpu_.wait();
}

void GpuUpdate::keep(compute::ConstPlacedFloats gradients, std::span<float> to) {
  gpu_.upload(to.data(), gradients.address(), gradients.size_bytes());
  gpu_.wait();
}

}  // namespace muster::ps
