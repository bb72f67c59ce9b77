#include "tests/unit/trainer/ps/protocol/books.h"

#include <algorithm>
#include <bit>

#include "tests/unit/trainer/one_tensor.h"
#include "tests/unit/trainer/simulation/same_sums.h"

namespace muster::ps::protocol {

namespace {

constexpr size_t kFloats = 2;  // a shard's, sync

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

std::string text(const checkpoint::EpochSums& sums) {
  std::string list;
  for (const auto& epoch : sums.known())
    list += " epoch " + std::to_string(epoch.number) + ": loss " + std::to_string(epoch.sums.loss) +
            " of " + std::to_string(epoch.sums.rows) + " rows";
  return list;
}

std::string text(std::span<const float> values) {
  std::string list;
  for (const float value : values) list += (list.empty() ? "" : ", ") + std::to_string(value);
  return "[" + list + "]";
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

std::unique_ptr<Shard> Books::make_shard(int shard) const {
  Shard::Shape shape;
  shape.shard = shard;
  shape.range = range(shard);
  shape.policy = setting_.sync      ? SyncPolicy::sync
                 : setting_.bounded ? SyncPolicy::bounded_staleness
                                    : SyncPolicy::async;
  shape.shards = setting_.shards;
  shape.backup_workers = static_cast<uint32_t>(setting_.backups);
  shape.max_staleness = static_cast<uint64_t>(setting_.staleness);
  return std::make_unique<Shard>(shape, *optimizer_, schedule_);
}

Shard::Content Books::initial(int shard) const {
  Shard::Content content;
  content.slots.assign(optimizer_->slot_names().size(), compute::Floats(floats_per_shard()));
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

// Sync: so few tickets that every job has several epochs.
uint64_t Books::tickets_per_epoch() const {
  return setting_.sync ? 2 : total();
}

// The members' rows add up to a power of two, so that the mean is exact.
compute::LossSums Books::sums(uint32_t rank, uint64_t step, uint64_t ticket) const {
  compute::LossSums sums;
  sums.loss = static_cast<double>(setting_.sync ? 1 + rank * 16 + step : 1 + ticket * ticket);
  sums.terms[0] = setting_.sync ? rank : 0;
  if (setting_.backups > 0)
    sums.rows = rank == 0 ? 4 : 0;
  else
    sums.rows = setting_.sync && rank == 0 ? 5 - setting_.members : 1;
  sums.weight = static_cast<double>(sums.rows);
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
  moments_.push_back({now});
  for (uint64_t step = 0; step < total(); ++step) {
    std::vector<Moment> next;
    for (const Moment& before : moments_.back())
      for (unsigned contributors = 1; contributors < 1u << setting_.members; ++contributors)
        if (may_contribute(contributors)) next.push_back(after(before, step, contributors));
    moments_.push_back(std::move(next));
  }
}

// `contributors` has one bit for each rank. Rank 0 always contributes.
bool Books::may_contribute(unsigned contributors) const {
  return (contributors & 1) != 0 &&
         std::popcount(contributors) + setting_.backups >= setting_.members;
}

Books::Moment Books::after(const Moment& before, uint64_t step, unsigned contributors) const {
  std::vector<float> sum(before.parameters.size());
  compute::LossSums sums_of_step;
  for (uint32_t rank = 0; rank < static_cast<uint32_t>(setting_.members); ++rank) {
    if ((contributors >> rank & 1) == 0) continue;
    const std::vector<float> part = gradient(rank, step, 0, before.parameters);
    std::transform(sum.begin(), sum.end(), part.begin(), sum.begin(), std::plus<>());
    sums_of_step += sums(rank, step, step);
  }
  compute::UpdateArguments update;
  update.learning_rate = 1;
  update.t = step + 1;
  update.divide_by(sums_of_step);
  Moment now = before;
  now.sums.add(step / tickets_per_epoch(), sums_of_step);
  const std::vector<std::span<float>> slots(now.slots.begin(), now.slots.end());
  optimizer_->apply({0, sum.size()}, update, now.parameters, sum, slots);
  return now;
}

void Books::check_parameters(const std::string& who, uint64_t step,
                             std::span<const float> parameters,
                             const checkpoint::EpochSums* sums) const {
  if (!setting_.sync) return;
  std::vector<Held> all;
  for (int shard = 0; shard < setting_.shards; ++shard)
    all.push_back({shard, parameters.subspan(range(shard).begin, range(shard).size()), {}, sums});
  check_held(who, step, all);
}

bool Books::holds(const Moment& moment, const Held& held) const {
  const auto part = [&](const compute::Floats& whole) {
    return std::span(whole).subspan(range(held.shard).begin, range(held.shard).size());
  };
  if (!same(part(moment.parameters), held.parameters)) return false;
  if (held.sums && !same_sums(moment.sums, *held.sums)) return false;
  for (size_t i = 0; i < held.slots.size(); ++i)
    if (!same(part(moment.slots[i]), held.slots[i])) return false;
  return true;
}

// Checks that everything held is of one moment.
void Books::check_held(const std::string& who, uint64_t step, std::span<const Held> all) const {
  if (step >= moments_.size())
    throw Violation(who + " is at step " + std::to_string(step) + ", beyond the last");
  const std::vector<Moment>& moments = moments_[step];
  const bool right = std::any_of(moments.begin(), moments.end(), [&](const Moment& moment) {
    return std::all_of(all.begin(), all.end(),
                       [&](const Held& held) { return holds(moment, held); });
  });
  if (right) return;
  std::string found;
  for (const Held& held : all)
    found += " " + text(held.parameters) + (held.sums ? text(*held.sums) : "");
  throw Violation(
      who + " at step " + std::to_string(step) + ": expected " + text(moments[0].parameters) +
      text(moments[0].sums) +
      (moments.size() > 1 ? ", or one of " + std::to_string(moments.size() - 1) + " more" : "") +
      " as in an undisturbed job, found" + found + ", or its slots differ");
}

void Books::check_shard(const std::string& who, uint64_t step, const Held& held) const {
  if (setting_.sync) return check_held(who, step, std::span(&held, 1));
  for (size_t ticket = 0; ticket < held.parameters.size(); ++ticket)
    if (held.parameters[ticket] > static_cast<float>(pushes_[ticket]))
      throw Violation(who + ": batch " + std::to_string(ticket) + " was pushed " +
                      std::to_string(pushes_[ticket]) + " times, and applied " +
                      std::to_string(held.parameters[ticket]) + " times");
  if (held.shard == 0 && held.sums) check_applied_sums(who, held);
}

// Async: a checkpoint has only shard 0's sums, those of the pushes that shard 0 has applied.
void Books::check_applied_sums(const std::string& who, const Held& held) const {
  checkpoint::EpochSums expected;
  for (size_t ticket = 0; ticket < held.parameters.size(); ++ticket)
    for (int times = 0; times < static_cast<int>(held.parameters[ticket]); ++times)
      expected.add(ticket / tickets_per_epoch(), sums(0, 0, ticket));
  if (!same_sums(expected, *held.sums))
    throw Violation(who + ": expected the sums of what was applied," + text(expected) + ", found" +
                    text(*held.sums));
}

void Books::check_folder(const SimulatedStorage::Folder& folder) const {
  const std::string name = SimulatedStorage::name_of(folder);
  if (static_cast<int>(folder.files.size()) != setting_.shards)
    throw Violation(name + " is published without all its files");
  std::vector<Held> all;
  for (const auto& [shard, file] : folder.files) {
    if (setting_.sync && file.step != folder.position.step)
      throw Violation(name + ": shard " + std::to_string(shard) + " is at step " +
                      std::to_string(file.step));
    all.push_back(
        {shard, file.parameters, {file.slots.begin(), file.slots.end()}, &folder.position.sums});
    check_shard(name, file.step, all.back());
  }
  if (setting_.sync) check_held(name, folder.position.step, all);
}

void Books::check_applied(const SimulatedStorage::Folder& final, bool exactly_once) const {
  if (setting_.sync) return;
  for (const auto& [shard, file] : final.files)
    for (size_t ticket = 0; ticket < file.parameters.size(); ++ticket) {
      const float count = file.parameters[ticket];
      if (count < 1 || (exactly_once && count > 1))
        throw Violation("batch " + std::to_string(ticket) + " was applied " +
                        std::to_string(count) + " times by shard " + std::to_string(shard));
    }
}

}  // namespace muster::ps::protocol
