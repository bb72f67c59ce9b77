#include "operator/local/hosts/placement.h"

#include <algorithm>
#include <set>

namespace muster::local {

Placement::Placement(std::vector<int> slots)
    : slots_(std::move(slots)), avoided_until_(slots_.size()) {}

int Placement::free_slots() const {
  int free = 0;
  for (size_t host = 0; host < slots_.size(); ++host) free += std::max(0, free_of(host));
  return free;
}

int Placement::free_of(size_t host) const {
  const auto here =
      std::ranges::count_if(places_, [&](const auto& entry) { return entry.second.host == host; });
  return slots_[host] - static_cast<int>(here);
}

std::optional<size_t> Placement::freest(const std::vector<bool>& allowed) const {
  std::optional<size_t> best;
  for (size_t host = 0; host < slots_.size(); ++host) {
    if (!allowed[host] || free_of(host) <= 0) continue;
    if (!best || free_of(host) > free_of(*best)) best = host;
  }
  return best;
}

Placement::Placed Placement::placed(size_t host, bool computes) const {
  std::set<int> taken;
  for (const auto& [name, other] : places_)
    if (other.host == host && other.computes) taken.insert(other.ordinal);
  Placed place;
  place.host = host;
  place.computes = computes;
  while (taken.contains(place.ordinal)) ++place.ordinal;
  return place;
}

void Placement::add(const std::string& name, bool computes) {
  if (places_.contains(name)) return;
  const size_t host = freest(std::vector(slots_.size(), true)).value_or(0);
  places_[name] = placed(host, computes);
}

bool Placement::is_lost(size_t host, Clock::time_point now) const {
  return avoided_until_[host] && now < *avoided_until_[host];
}

void Placement::lose(size_t host, Clock::time_point now) {
  avoided_until_[host] = now + kAvoided;
}

bool Placement::move(const std::string& name, Clock::time_point now) {
  Placed& place = places_.at(name);
  if (!is_lost(place.host, now)) return false;
  std::vector<bool> allowed(slots_.size());
  for (size_t host = 0; host < slots_.size(); ++host) allowed[host] = !is_lost(host, now);
  const std::optional<size_t> host = freest(allowed);
  if (!host) return false;
  place = placed(*host, place.computes);
  return true;
}

}  // namespace muster::local
