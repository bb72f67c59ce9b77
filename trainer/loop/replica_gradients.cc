#include "trainer/loop/replica_gradients.h"

#include <algorithm>

namespace muster::loop {

namespace {

// Whether the two are the sides of a node at or below `top`.
bool joins(compute::Subtree top, compute::Subtree left, compute::Subtree right) {
  for (compute::Subtree node = top; node.size() > 1;) {
    if (node.first() == left && node.second() == right) return true;
    node = right.begin < node.first().end ? node.first() : node.second();
  }
  return false;
}

}  // namespace

ReplicaGradients::ReplicaGradients(std::vector<Device> devices, bool exclusive, bool rounded)
    : devices_(std::move(devices)), arithmetic_(rounded), wave_(devices_.size()) {
  for (const Device& device : devices_) gradients_.emplace_back(device.engine);
  if (devices_.size() > 1)
    team_ = std::make_unique<compute::cpu::Team>(static_cast<int>(devices_.size()), exclusive);
}

void ReplicaGradients::each(const std::function<void(int)>& work) {
  if (!team_) return work(0);
  failures_.assign(devices_.size(), nullptr);
  team_->run([&](compute::cpu::Member member) {
    try {
      work(member.index);
    } catch (...) {
      failures_[static_cast<size_t>(member.index)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures_)
    if (failure) std::rethrow_exception(failure);
}

std::span<float> ReplicaGradients::take() {
  if (free_.empty()) {
    buffers_.emplace_back(devices_.front().engine.layout().size());
    return buffers_.back();
  }
  const std::span<float> buffer = free_.back();
  free_.pop_back();
  return buffer;
}

// Joins what is complete.
void ReplicaGradients::push(compute::Subtree top, int replica, std::span<float> sum) {
  Partial last{{replica, replica + 1}, sum};
  while (!partials_.empty() && joins(top, partials_.back().node, last.node)) {
    const Partial left = partials_.back();
    partials_.pop_back();
    arithmetic_.add(left.sum.data(), last.sum.data(), left.sum);
    free_.push_back(last.sum);
    last = {{left.node.begin, last.node.end}, left.sum};
  }
  partials_.push_back(last);
}

void ReplicaGradients::compute(compute::Subtree node, const WorkOf& work_of,
                               std::span<float> parameters, std::span<float> target,
                               std::span<compute::LossSums> sums,
                               const compute::Engine::OnComplete& on_complete) {
  static const compute::Engine::OnComplete nobody;
  const auto& told = node.size() == 1 ? on_complete : nobody;
  partials_.clear();
  const int width = devices();
  for (int first = node.begin; first < node.end; first += width) {
    const int count = std::min(width, node.end - first);
    for (int i = 0; i < count; ++i)
      wave_[static_cast<size_t>(i)] = first + i == node.begin ? target : take();
    each([&](int i) {
      if (i >= count) return;
      const auto at = static_cast<size_t>(i);
      devices_[at].engine.use(parameters, wave_[at]);
      sums[static_cast<size_t>(first + i - node.begin)] =
          gradients_[at].compute(work_of(first + i), devices_[at].feed, told);
    });
    for (int i = 0; i < count; ++i) push(node, first + i, wave_[static_cast<size_t>(i)]);
  }
}

}  // namespace muster::loop
