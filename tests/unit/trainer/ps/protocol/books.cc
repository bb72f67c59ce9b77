#include "tests/unit/trainer/ps/protocol/books.h"

#include <algorithm>
#include <bit>

namespace muster::ps::protocol {

namespace {

constexpr size_t kFloats = 2;  // a shard's, sync

compute::ParameterLayout layout_of(size_t floats) {
  compute::ParameterTensor tensor;
  tensor.name = "w";
  tensor.shape = {static_cast<int64_t>(floats)};
  tensor.count = floats;
  return compute::ParameterLayout({tensor});
}

size_t floats_of(const Setting& setting) {
  return setting.sync ? kFloats : static_cast<size_t>(setting.steps);
}

compute::Sgd sgd_of(const Setting& setting) {
  compute::Sgd sgd;
  sgd.momentum = setting.sync ? 0.5f : 0.0f;
  return sgd;
}

bool same(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string text(std::span<const float> values) {
  std::string list;
  for (const float value : values) list += (list.empty() ? "" : ", ") + std::to_string(value);
  return "[" + list + "]";
}

[[noreturn]] void differ(const std::string& who, uint64_t step, std::span<const float> expected,
                         std::span<const float> found) {
  throw Violation(who + " at step " + std::to_string(step) + ": expected " + text(expected) +
                  " as in an undisturbed job, found " + text(found));
}

}  // namespace

Books::Books(const Setting& setting)
    : setting_(setting),
      layout_(layout_of(floats_of(setting) * static_cast<size_t>(setting.shards))),
      optimizer_(compute::Optimizer::create(sgd_of(setting), layout_)),
      pushes_(total()) {
  schedule_.learning_rate = 1;
  if (setting_.sync) run_undisturbed();
}

size_t Books::floats_per_shard() const {
  return floats_of(setting_);
}

compute::Range Books::range(int shard) const {
  const size_t begin = static_cast<size_t>(shard) * floats_per_shard();
  return {begin, begin + floats_per_shard()};
}

Shard Books::make_shard(int shard) const {
  Shard::Shape shape;
  shape.shard = shard;
  shape.range = range(shard);
  shape.policy = setting_.sync ? Shard::Policy::sync : Shard::Policy::async;
  return Shard(shape, *optimizer_, schedule_);
}

Shard::Content Books::initial(int shard) const {
  Shard::Content content;
  content.slots.assign(optimizer_->slot_names().size(), std::vector<float>(floats_per_shard()));
  for (size_t i = range(shard).begin; i < range(shard).end; ++i)
    content.parameters.push_back(setting_.sync ? static_cast<float>(i + 8) : 0.0f);
  return content;
}

std::vector<float> Books::gradient(uint32_t rank, uint64_t step, uint64_t ticket,
                                   std::span<const float> parameters) const {
  std::vector<float> gradient(parameters.size());
  if (!setting_.sync) {
    for (size_t i = ticket; i < gradient.size(); i += floats_per_shard()) gradient[i] = -1;
    return gradient;
  }
  uint64_t hash = 14695981039346656037u;
  const auto mix = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  mix(rank);
  mix(step);
  for (const float value : parameters) mix(std::bit_cast<uint32_t>(value));
  for (float& value : gradient) {
    mix(7);
    value = static_cast<float>((hash >> 33) % 9) - 4;
  }
  return gradient;
}

// Together a power of two, so that the mean is exact.
compute::LossSums Books::sums(uint32_t rank) const {
  compute::LossSums sums;
  sums.rows = setting_.sync && rank == 0 ? 5 - setting_.members : 1;
  return sums;
}

void Books::run_undisturbed() {
  Moment now;
  now.slots.resize(optimizer_->slot_names().size());
  for (int shard = 0; shard < setting_.shards; ++shard) {
    const Shard::Content content = initial(shard);
    now.parameters.insert(now.parameters.end(), content.parameters.begin(),
                          content.parameters.end());
  }
  for (auto& slot : now.slots) slot.assign(now.parameters.size(), 0.0f);
  moments_.push_back(now);
  for (uint64_t step = 0; step < total(); ++step) {
    std::vector<float> sum(now.parameters.size());
    int64_t rows = 0;
    for (uint32_t rank = 0; rank < static_cast<uint32_t>(setting_.members); ++rank) {
      const std::vector<float> part = gradient(rank, step, 0, now.parameters);
      std::transform(sum.begin(), sum.end(), part.begin(), sum.begin(), std::plus<>());
      rows += sums(rank).rows;
    }
    compute::UpdateArguments update;
    update.learning_rate = 1;
    update.t = step + 1;
    update.inverse_rows = 1.0f / static_cast<float>(rows);
    const std::vector<std::span<float>> slots(now.slots.begin(), now.slots.end());
    optimizer_->apply({0, sum.size()}, update, now.parameters, sum, slots);
    moments_.push_back(now);
  }
}

void Books::check_parameters(const std::string& who, uint64_t step,
                             std::span<const float> parameters) const {
  if (!setting_.sync) return;
  if (step >= moments_.size())
    throw Violation(who + " is at step " + std::to_string(step) + ", beyond the last");
  if (!same(moments_[step].parameters, parameters))
    differ(who, step, moments_[step].parameters, parameters);
}

void Books::check_shard(const std::string& who, int shard, uint64_t step,
                        std::span<const float> parameters,
                        const std::vector<std::vector<float>>& slots) const {
  const auto part = [&](const std::vector<float>& whole) {
    return std::span(whole).subspan(range(shard).begin, range(shard).size());
  };
  if (!setting_.sync) {
    for (size_t ticket = 0; ticket < parameters.size(); ++ticket)
      if (parameters[ticket] > static_cast<float>(pushes_[ticket]))
        throw Violation(who + ": batch " + std::to_string(ticket) + " was pushed " +
                        std::to_string(pushes_[ticket]) + " times, and applied " +
                        std::to_string(parameters[ticket]) + " times");
    return;
  }
  if (step >= moments_.size())
    throw Violation(who + " is at step " + std::to_string(step) + ", beyond the last");
  const Moment& moment = moments_[step];
  if (!same(part(moment.parameters), parameters))
    differ(who, step, part(moment.parameters), parameters);
  for (size_t i = 0; i < slots.size(); ++i)
    if (!same(part(moment.slots[i]), slots[i])) differ(who, step, part(moment.slots[i]), slots[i]);
}

void Books::check_folder(const SimulatedStorage::Folder& folder) const {
  const std::string name = SimulatedStorage::name_of(folder);
  if (static_cast<int>(folder.files.size()) != setting_.shards)
    throw Violation(name + " is published without all its files");
  for (const auto& [shard, file] : folder.files) {
    if (setting_.sync && file.step != folder.position.step)
      throw Violation(name + ": shard " + std::to_string(shard) + " is at step " +
                      std::to_string(file.step));
    check_shard(name, shard, file.step, file.parameters, file.slots);
  }
}

void Books::check_applied(const SimulatedStorage::Folder& final, bool exactly_once) const {
  if (setting_.sync) return;
  for (const auto& [shard, file] : final.files)
    for (size_t ticket = 0; ticket < file.parameters.size(); ++ticket) {
      const float count = file.parameters[ticket];
      // A push that reached shard 0 and not another is not repeated there: see decision 8.
      const bool enough = count >= 1 || shard > 0;
      if (!enough || (exactly_once && count > 1))
        throw Violation("batch " + std::to_string(ticket) + " was applied " +
                        std::to_string(count) + " times by shard " + std::to_string(shard));
    }
}

}  // namespace muster::ps::protocol
