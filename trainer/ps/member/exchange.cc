#include "trainer/ps/member/exchange.h"

#include <algorithm>

#include "common/error.h"
#include "common/exit_code.h"

namespace muster::ps {

using compute::ConstPlacedFloats;
using compute::PlacedFloats;

namespace {

constexpr std::chrono::milliseconds kGlance{200};  // time between two calls of `superseded`

Exchange::Result ended(Exchange::Outcome outcome) {
  Exchange::Result result;
  result.outcome = outcome;
  return result;
}

}  // namespace

Exchange::Exchange(std::vector<compute::Range> ranges, uint32_t rank, SyncPolicy policy,
                   Connect connect, MemberMemory* memory, bool backups)
    : ranges_(std::move(ranges)),
      rank_(rank),
      asks_(policy != SyncPolicy::sync),
      backups_(backups && !asks_),
      connect_(std::move(connect)),
      memory_(memory) {}

void Exchange::connect(uint64_t generation, const std::vector<int>& serving) {
  close();
  generation_ = generation;
  sequence_ = 0;
  if (memory_) {
    memory_->renew();
    bell_.hang(&memory_->view().header().bell, memory_->view().header().spins);
  }
  for (size_t shard = 0; shard < ranges_.size(); ++shard) {
    const int ps = serving.empty() ? static_cast<int>(shard) : serving.at(shard);
    links_.push_back(connect_({static_cast<int>(shard), ps, ranges_[shard], bell_, memory_}));
    ps_.push_back(static_cast<size_t>(ps));
    traffic_.resize(std::max(traffic_.size(), ps_.back() + 1));
  }
  awaited_.assign(links_.size(), 0);
}

void Exchange::close() {
  links_.clear();
  ps_.clear();
}

Exchange::Links Exchange::look() const {
  Links links = Links::answered;
  for (const auto& link : links_) {
    const ShardLink::State state = link->state();
    if (state == ShardLink::State::broken) return Links::broken;
    if (state == ShardLink::State::waiting) links = Links::waiting;
  }
  return links;
}

void Exchange::note_answers(const Stopwatch& asked) {
  for (size_t shard = 0; shard < links_.size(); ++shard) {
    if (awaited_[shard] == 0 || links_[shard]->state() != ShardLink::State::answered) continue;
    awaited_[shard] = 0;
    Traffic& traffic = traffic_[ps_[shard]];
    ++traffic.answers;
    traffic.seconds += asked.seconds();
  }
}

Exchange::Result Exchange::wait(const Watch& watch) {
  const auto answered = [&](const Stopwatch& asked) {
    note_answers(asked);
    return look() != Links::waiting;
  };
  for (Stopwatch asked;;) {
    if (bell_.wait(watch.stop, kGlance, [&] { return answered(asked); })) {
      if (const auto result = poll()) return *result;
      asked = {};
      continue;
    }
    if (watch.stop.stop_requested()) return ended(Outcome::interrupted);
    if (watch.superseded()) return ended(Outcome::superseded);
  }
}

std::optional<Exchange::Result> Exchange::poll() {
  const Links links = look();
  if (links == Links::waiting) return std::nullopt;
  if (links == Links::broken) return ended(Outcome::broken);
  const Result result = read();
  if (result.outcome != Outcome::ok && !moved_on()) return result;
  switch (phase_) {
    case Phase::aligning:
      return aligned(result);
    case Phase::handing_over:
      if (result.outcome != Outcome::ok) return result;
      phase_ = Phase::pushing;
      push_to(0, 1);
      return std::nullopt;
    case Phase::pushing:
      return pushed(result);
    case Phase::fetching:
      return fetch_rest(links_[0]->reply());
    case Phase::fetching_rest:
      if (result.outcome == Outcome::ok) return result;
      phase_ = Phase::fetching;
      header_ = fresh_header();
      header_.pull = header_.newest = true;
      pull_from(0, 1);
      return std::nullopt;
    case Phase::asking:
      return asked(result);
  }
  return result;
}

// Whether, with backup workers, the generation has only moved on to a later step while we asked the
// shards for one step.
bool Exchange::moved_on() const {
  if (!backups_) return false;
  return std::all_of(links_.begin(), links_.end(), [&](const auto& link) {
    const ReplyHeader reply = link->reply();
    return reply.status == Status::ok || reply.generation == generation_;
  });
}

std::optional<Exchange::Result> Exchange::aligned(Result result) {
  if (asks_) return asked(result);
  if (result.outcome != Outcome::ok) {
    begin_align(parameters_);
    return std::nullopt;
  }
  if (!agree(result)) return std::nullopt;
  return result;
}

std::optional<Exchange::Result> Exchange::pushed(Result result) {
  if (asks_) return asked(result);
  if (backups_) {
    if (result.step <= pushed_step_) return ended(Outcome::superseded);
    return fetch_rest(links_[0]->reply());
  }
  // If the shards are at different steps, the group has continued with another member in our place.
  const bool whole = std::all_of(links_.begin(), links_.end(), [&](const auto& link) {
    return link->reply().step == pushed_step_ + 1;
  });
  if (!whole) result.outcome = Outcome::superseded;
  return result;
}

// After shard 0's answer `first`: asks the other shards for their parameters of that step.
std::optional<Exchange::Result> Exchange::fetch_rest(const ReplyHeader& first) {
  if (links_.size() == 1) return read();
  phase_ = Phase::fetching_rest;
  header_ = fresh_header();
  header_.pull = true;
  header_.newest = asks_;
  header_.step = first.step;
  header_.contributors = first.contributors;
  pull_from(1, links_.size());
  return std::nullopt;
}

// Async: handles shard 0's answer about work.
std::optional<Exchange::Result> Exchange::asked(Result result) {
  if (result.finished || (result.ticket && phase_ != Phase::asking)) return result;
  if (result.ticket) return fetch_rest(links_[0]->reply());
  phase_ = Phase::asking;
  header_ = fresh_header();
  header_.pull = header_.newest = true;
  pull_from(0, 1);
  return std::nullopt;
}

// Combines the answers of all shards; the sums and the work are shard 0's.
Exchange::Result Exchange::read() const {
  Result result;
  for (size_t shard = 0; shard < links_.size(); ++shard) {
    const ReplyHeader reply = links_[shard]->reply();
    if (reply.status == Status::rejected)
      throw Invalid("shard " + std::to_string(shard) + " rejected this replica: " + reply.message,
                    kProtocol);
    if (reply.status == Status::superseded) result.outcome = Outcome::superseded;
  }
  const ReplyHeader first = links_[0]->reply();
  result.step = first.step;
  result.sums = first.sums;
  result.ticket = first.ticket;
  result.finished = first.finished;
  return result;
}

PushHeader Exchange::fresh_header() const {
  PushHeader header;
  header.generation = generation_;
  header.rank = rank_;
  return header;
}

void Exchange::push_to(size_t begin, size_t end) {
  header_.sequence = ++sequence_;
  for (size_t shard = begin; shard < end; ++shard)
    ask(shard, gradients_.part(ranges_[shard]),
        phase_ == Phase::handing_over ? PlacedFloats() : parameters_.part(ranges_[shard]));
}

void Exchange::ask(size_t shard, ConstPlacedFloats gradients, PlacedFloats parameters) {
  traffic_[ps_[shard]].floats += gradients.size() + parameters.size();
  awaited_[shard] = 1;
  links_[shard]->send(header_, gradients, parameters);
}

void Exchange::pull_from(size_t begin, size_t end) {
  header_.sequence = ++sequence_;
  for (size_t shard = begin; shard < end; ++shard) ask(shard, {}, parameters_.part(ranges_[shard]));
}

// Returns true if all shards have answered with the parameters of the same step. Otherwise asks the
// shards that are ahead for their parameters of the lowest step.
bool Exchange::agree(Result& result) {
  uint64_t lowest = links_[0]->reply().step;
  for (const auto& link : links_) lowest = std::min(lowest, link->reply().step);
  result.step = lowest;
  header_.newest = false;
  header_.step = lowest;
  bool agreed = true;
  for (size_t shard = 0; shard < links_.size(); ++shard) {
    if (links_[shard]->reply().step == lowest) continue;
    agreed = false;
    pull_from(shard, shard + 1);
  }
  return agreed;
}

void Exchange::begin_align(PlacedFloats parameters) {
  phase_ = Phase::aligning;
  header_ = fresh_header();
  header_.pull = header_.newest = true;
  parameters_ = parameters;
  pull_from(0, links_.size());
}

Exchange::Result Exchange::align(PlacedFloats parameters, const Watch& watch) {
  begin_align(parameters);
  return wait(watch);
}

void Exchange::begin_step(uint64_t step, uint64_t ticket, const compute::LossSums& sums,
                          ConstPlacedFloats gradients, PlacedFloats parameters) {
  header_ = fresh_header();
  header_.step = step;
  header_.ticket = ticket;
  header_.sums = sums;
  pushed_step_ = step;
  gradients_ = gradients;
  parameters_ = parameters;
  const bool held_first = backups_ && links_.size() > 1;
  phase_ = held_first ? Phase::handing_over : Phase::pushing;
  push_to(held_first ? 1 : 0, links_.size());
}

Exchange::Result Exchange::step(uint64_t step, uint64_t ticket, const compute::LossSums& sums,
                                ConstPlacedFloats gradients, PlacedFloats parameters,
                                const Watch& watch) {
  begin_step(step, ticket, sums, gradients, parameters);
  return wait(watch);
}

}  // namespace muster::ps
