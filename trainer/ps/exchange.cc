#include "trainer/ps/exchange.h"

#include <algorithm>

#include "common/error.h"
#include "common/exit_code.h"

namespace muster::ps {

namespace {
constexpr std::chrono::milliseconds kGlance{200};  // between looks at what may have superseded us
}

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

Exchange::Result Exchange::wait(const Watch& watch) {
  Result result;
  for (;;) {
    bool broken = false;
    const bool ready = bell_.wait(watch.stop, kGlance, [&] {
      bool waiting = false;
      for (const auto& link : links_) {
        const ShardLink::State state = link->state();
        broken |= state == ShardLink::State::broken;
        waiting |= state == ShardLink::State::waiting;
      }
      return broken || !waiting;
    });
    if (ready && !broken) break;
    if (broken) return result.outcome = Outcome::broken, result;
    if (watch.stop.stop_requested()) return result.outcome = Outcome::interrupted, result;
    if (watch.superseded()) return result.outcome = Outcome::superseded, result;
  }
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

void Exchange::pull(size_t shard, const PushHeader& header, std::span<float> parameters) {
  links_[shard]->send(header, {}, part(parameters, shard));
}

Exchange::Result Exchange::align(std::span<float> parameters, const Watch& watch) {
  PushHeader header;
  header.generation = generation_;
  header.rank = rank_;
  header.sequence = ++sequence_;
  header.pull = header.newest = true;
  for (size_t shard = 0; shard < links_.size(); ++shard) pull(shard, header, parameters);
  Result result = wait(watch);
  if (!sync_) return result;
  while (result.outcome == Outcome::ok) {
    uint64_t lowest = links_[0]->reply().step;
    for (const auto& link : links_) lowest = std::min(lowest, link->reply().step);
    header.newest = false;
    header.step = lowest;
    header.sequence = ++sequence_;
    bool agreed = true;
    for (size_t shard = 0; shard < links_.size(); ++shard) {
      if (links_[shard]->reply().step == lowest) continue;
      agreed = false;
      pull(shard, header, parameters);
    }
    result.step = lowest;
    if (agreed) break;
    result = wait(watch);
  }
  return result;
}

Exchange::Result Exchange::step(uint64_t step, uint64_t ticket, const compute::LossSums& sums,
                                std::span<const float> gradients, std::span<float> parameters,
                                const Watch& watch) {
  PushHeader header;
  header.generation = generation_;
  header.rank = rank_;
  header.step = step;
  header.ticket = ticket;
  header.sums = sums;
  header.sequence = ++sequence_;
  for (size_t shard = 0; shard < links_.size(); ++shard)
    links_[shard]->send(header, gradients.subspan(ranges_[shard].begin, ranges_[shard].size()),
                        part(parameters, shard));
  Result result = wait(watch);
  if (!sync_ || result.outcome != Outcome::ok) return result;
  // Somebody else's group went on without us: our parameters are of several steps.
  for (const auto& link : links_)
    if (link->reply().step != step + 1) result.outcome = Outcome::superseded;
  return result;
}

}  // namespace muster::ps
