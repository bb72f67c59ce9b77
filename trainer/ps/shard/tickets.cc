#include "trainer/ps/shard/tickets.h"

#include <algorithm>

namespace muster::ps {

Tickets::Tickets(uint64_t next, uint64_t total, std::vector<uint64_t> outstanding,
                 uint64_t per_epoch)
    : next_(next),
      total_(total),
      per_epoch_(per_epoch),
      returned_(outstanding.begin(), outstanding.end()) {}

std::optional<uint64_t> Tickets::take(uint64_t holder) {
  uint64_t ticket = 0;
  if (!returned_.empty()) {
    ticket = returned_.extract(returned_.begin()).value();
  } else if (next_ < total_) {
    ticket = next_++;
  } else {
    return std::nullopt;
  }
  held_[ticket] = holder;
  return ticket;
}

void Tickets::done(uint64_t ticket) {
  held_.erase(ticket);
  // The ticket's first holder may have been slow, not lost.
  returned_.erase(ticket);
}

void Tickets::release(uint64_t holder) {
  for (auto it = held_.begin(); it != held_.end();) {
    if (it->second != holder) {
      ++it;
      continue;
    }
    returned_.insert(it->first);
    it = held_.erase(it);
  }
}

void Tickets::release_all() {
  for (const auto& [ticket, holder] : held_) returned_.insert(ticket);
  held_.clear();
}

bool Tickets::may_follow(uint64_t next) const {
  return next <= next_ ||
         (next <= total_ && next - next_ <= kMostAtOnce - std::min(kMostAtOnce, open()));
}

void Tickets::follow(uint64_t next) {
  for (; next_ < next; ++next_) returned_.insert(returned_.end(), next_);
}

uint64_t Tickets::open() const {
  return returned_.size() + held_.size();
}

std::vector<uint64_t> Tickets::outstanding() const {
  std::vector<uint64_t> tickets(returned_.begin(), returned_.end());
  for (const auto& [ticket, holder] : held_) tickets.push_back(ticket);
  std::sort(tickets.begin(), tickets.end());
  return tickets;
}

}  // namespace muster::ps
