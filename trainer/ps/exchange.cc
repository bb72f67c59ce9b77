#include "trainer/ps/exchange.h"

#include <algorithm>

#include "common/error.h"
#include "common/exit_code.h"

namespace muster::ps {

namespace {

constexpr std::chrono::milliseconds kGlance{200};  // between looks at what may have superseded us

Exchange::Result ended(Exchange::Outcome outcome) {
  Exchange::Result result;
  result.outcome = outcome;
  return result;
}

}  // namespace

Exchange::Exchange(std::vector<compute::Range> ranges, uint32_t rank, bool sync, Connect connect,
                   MemberMemory* memory)
    : ranges_(std::move(ranges)),
      rank_(rank),
      sync_(sync),
      connect_(std::move(connect)),
      memory_(memory) {}

void Exchange::connect(uint64_t generation) {
  close();
  generation_ = generation;
  sequence_ = 0;
  if (memory_) {
    memory_->renew();
    bell_.hang(&memory_->view().header().bell, memory_->view().header().spins);
  }
  for (size_t shard = 0; shard < ranges_.size(); ++shard)
    links_.push_back(connect_({static_cast<int>(shard), ranges_[shard], bell_, memory_}));
}

void Exchange::close() {
  links_.clear();
}

std::span<float> Exchange::part(std::span<float> whole, size_t shard) const {
  return whole.subspan(ranges_[shard].begin, ranges_[shard].size());
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

Exchange::Result Exchange::wait(const Watch& watch) {
  for (;;) {
    if (bell_.wait(watch.stop, kGlance, [&] { return look() != Links::waiting; })) {
      if (const auto result = poll()) return *result;
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
  Result result = read();
  if (!sync_ || result.outcome != Outcome::ok) return result;
  if (header_.pull) {
    if (!agree(result)) return std::nullopt;
    return result;
  }
  // Somebody else's group went on without us: our parameters are of several steps.
  for (const auto& link : links_)
    if (link->reply().step != header_.step + 1) result.outcome = Outcome::superseded;
  return result;
}

// What all shards have answered; the sums and the work are shard 0's.
Exchange::Result Exchange::read() const {
  Result result;
  for (size_t shard = 0; shard < links_.size(); ++shard) {
    const ReplyHeader reply = links_[shard]->reply();
    if (reply.status == Status::rejected)
      throw Invalid("ps " + std::to_string(shard) + " rejected this replica: " + reply.message,
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

void Exchange::pull(size_t shard, const PushHeader& header) {
  links_[shard]->send(header, {}, part(parameters_, shard));
}

// True if every shard has answered with the parameters of one step; else asks those that are ahead
// of the lowest for theirs of that step.
bool Exchange::agree(Result& result) {
  uint64_t lowest = links_[0]->reply().step;
  for (const auto& link : links_) lowest = std::min(lowest, link->reply().step);
  result.step = lowest;
  header_.newest = false;
  header_.step = lowest;
  ++header_.sequence;
  bool agreed = true;
  for (size_t shard = 0; shard < links_.size(); ++shard) {
    if (links_[shard]->reply().step == lowest) continue;
    agreed = false;
    pull(shard, header_);
  }
  sequence_ = header_.sequence;
  return agreed;
}

void Exchange::begin_align(std::span<float> parameters) {
  header_ = {};
  header_.generation = generation_;
  header_.rank = rank_;
  header_.sequence = ++sequence_;
  header_.pull = header_.newest = true;
  parameters_ = parameters;
  for (size_t shard = 0; shard < links_.size(); ++shard) pull(shard, header_);
}

Exchange::Result Exchange::align(std::span<float> parameters, const Watch& watch) {
  begin_align(parameters);
  return wait(watch);
}

void Exchange::begin_step(uint64_t step, uint64_t ticket, const compute::LossSums& sums,
                          std::span<const float> gradients, std::span<float> parameters) {
  header_ = {};
  header_.generation = generation_;
  header_.rank = rank_;
  header_.step = step;
  header_.ticket = ticket;
  header_.sums = sums;
  header_.sequence = ++sequence_;
  parameters_ = parameters;
  for (size_t shard = 0; shard < links_.size(); ++shard)
    links_[shard]->send(header_, gradients.subspan(ranges_[shard].begin, ranges_[shard].size()),
                        part(parameters, shard));
}

Exchange::Result Exchange::step(uint64_t step, uint64_t ticket, const compute::LossSums& sums,
                                std::span<const float> gradients, std::span<float> parameters,
                                const Watch& watch) {
  begin_step(step, ticket, sums, gradients, parameters);
  return wait(watch);
}

}  // namespace muster::ps
