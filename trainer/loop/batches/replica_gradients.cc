#include "trainer/loop/batches/replica_gradients.h"

#include <algorithm>

#include "common/threads/watched_work.h"

namespace muster::loop {

namespace {

// Whether `left` and `right` are the children of one node at or below `top`.
bool joins(compute::Subtree top, compute::Subtree left, compute::Subtree right) {
  for (compute::Subtree node = top; node.size() > 1;) {
    if (node.first() == left && node.second() == right) return true;
    node = right.begin < node.first().end ? node.first() : node.second();
  }
  return false;
}

}  // namespace

ReplicaGradients::ReplicaGradients(std::vector<FedEngine> devices, bool exclusive, bool rounded)
    : devices_(std::move(devices)),
      arithmetic_(rounded),
      threads_(static_cast<int>(devices_.size()), exclusive),
      wave_(devices_.size()) {
  for (const FedEngine& device : devices_) gradients_.emplace_back(device.engine);
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

// Joins sums whose siblings are complete. The sum of `top` itself is not kept as a partial sum any
// more.
void ReplicaGradients::push(compute::Subtree top, int replica, compute::PlacedFloats sum) {
  Partial last{{replica, replica + 1}, sum};
  while (!partials_.empty() && joins(top, partials_.back().node, last.node)) {
    const Partial left = partials_.back();
    partials_.pop_back();
    const std::span<float> both = left.sum.host(), right = last.sum.host();
    arithmetic_.add(both.data(), right.data(), both);
    free_.push_back(right);
    last = {{left.node.begin, last.node.end}, left.sum};
  }
  if (last.node != top) partials_.push_back(last);
}

void ReplicaGradients::load(compute::PlacedFloats parameters) {
  for (GradientSum& gradients : gradients_) gradients.load(parameters);
}

void ReplicaGradients::pin(std::span<const std::span<float>> memory) {
  pinned_.clear();
  for (const std::span<float> one : memory)
    pinned_.push_back(devices_.front().engine.pin(std::as_bytes(one)));
}

void ReplicaGradients::release() {
  pinned_.clear();
  for (GradientSum& gradients : gradients_) gradients.release();
}

void ReplicaGradients::compute(std::span<const Target> targets, const WorkOf& work_of,
                               std::span<compute::LossSums> sums,
                               const compute::Engine::OnComplete& on_complete) {
  static const compute::Engine::OnComplete nobody;
  if (targets.empty()) return;
  const int begin = targets.front().node.begin;
  const int end = targets.back().node.end;
  const bool last_alone = targets.back().node.size() == 1 && (end - begin - 1) % devices() == 0;
  auto target = targets.begin();
  partials_.clear();
  for (int first = begin; first < end; first += devices()) {
    const int count = std::min(devices(), end - first);
    for (int i = 0; i < count; ++i) {
      if (first + i == target->node.end) ++target;
      wave_[static_cast<size_t>(i)] = *target;
      if (first + i != target->node.begin) wave_[static_cast<size_t>(i)].sum = take();
    }
    const auto& told = last_alone && first == end - 1 ? on_complete : nobody;
    each([&](int i) {
      if (i >= count) return;
      const auto at = static_cast<size_t>(i);
      const Turn turn{.first = begin + i,
                      .count = data::quotient_up(end - begin - i, devices()),
                      .distance = devices(),
                      .taken = (first - begin) / devices()};
      sums[static_cast<size_t>(first + i - begin)] =
          gradients_[at].compute(work_of(turn), devices_[at].feed, wave_[at].sum, told);
    });
    WatchedWork::beat();
    for (int i = 0; i < count; ++i) {
      const Target& computed = wave_[static_cast<size_t>(i)];
      push(computed.node, first + i, computed.sum);
    }
  }
}

void ReplicaGradients::compute_on_devices(int first, const WorkOf& work_of,
                                          std::span<compute::LossSums> sums) {
  each([&](int i) {
    const Turn turn{.first = first + i, .count = 1, .distance = devices(), .taken = 0};
    const FedEngine& device = devices_[static_cast<size_t>(i)];
    sums[static_cast<size_t>(i)] =
        device.engine.compute_gradients(device.feed.batch(work_of(turn)));
  });
  WatchedWork::beat();
}

}  // namespace muster::loop
