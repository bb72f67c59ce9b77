#include "operator/local/hosts/placement.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace muster::local {

Placement::Placement(std::vector<int> slots)
    : slots_(std::move(slots)), avoided_until_(slots_.size()) {}

int Placement::slots() const {
  return std::accumulate(slots_.begin(), slots_.end(), 0);
}

int Placement::most_computing() const {
  std::vector<int> counts(slots_.size());
  for (const auto& [name, place] : places_)
    if (place.computes) ++counts[place.host];
  return std::ranges::max(counts);
}

void Placement::put(Place& place, size_t host) {
  std::set<int> taken;
  for (const auto& [name, other] : places_)
    if (&other != &place && other.host == host && other.takes_gpus) taken.insert(other.ordinal);
  place.host = host;
  place.ordinal = 0;
  while (taken.contains(place.ordinal)) ++place.ordinal;
}

void Placement::add(const Replica& replica) {
  if (places_.contains(replica.name)) return;
  std::vector<int> left = slots_;
  for (const auto& [name, place] : places_) --left[place.host];
  const size_t number = places_.size();
  Place& place = places_[replica.name];
  place.number = number;
  place.computes = replica.computes;
  place.takes_gpus = replica.takes_gpus;
  put(place, static_cast<size_t>(std::ranges::max_element(left) - left.begin()));
}

int Placement::running_on(size_t host) const {
  return static_cast<int>(std::ranges::count_if(
      places_, [&](const auto& entry) { return entry.second.host == host && entry.second.runs; }));
}

bool Placement::is_avoided(size_t host, Clock::time_point now) const {
  return avoided_until_[host] && now < *avoided_until_[host];
}

std::optional<size_t> Placement::free_host(size_t but, int reserved, Clock::time_point now) const {
  std::optional<size_t> best;
  int most = 0, all = 0;
  for (size_t host = 0; host < slots_.size(); ++host) {
    const int free = slots_[host] - running_on(host);
    if (host == but || is_avoided(host, now) || free <= 0) continue;
    all += free;
    if (free <= most) continue;
    best = host;
    most = free;
  }
  return all > reserved ? best : std::nullopt;
}

int Placement::waiting_before(const Place& place, Clock::time_point now) const {
  return static_cast<int>(std::ranges::count_if(places_, [&](const auto& entry) {
    const Place& other = entry.second;
    return other.number < place.number && is_avoided(other.host, now) &&
           (other.runs || other.was_lost);
  }));
}

Placement::Begins Placement::begin(const std::string& name, Clock::time_point now) {
  Place& place = places_.at(name);
  place.runs = false;  // an earlier call may not have led to a start
  const bool was_lost = std::exchange(place.was_lost, false);
  const bool wants_another =
      was_lost || is_avoided(place.host, now) || running_on(place.host) >= slots_[place.host];
  const size_t before = place.host;
  if (wants_another) {
    const int reserved = waiting_before(place, now);
    if (const std::optional<size_t> host = free_host(before, reserved, now)) put(place, *host);
  }
  place.runs = true;
  if (place.host != before) return Begins::elsewhere;
  return was_lost ? Begins::anew : Begins::as_before;
}

void Placement::end(const std::string& name, bool lost, Clock::time_point now) {
  Place& place = places_.at(name);
  place.runs = false;
  place.was_lost = lost;
  if (lost) avoided_until_[place.host] = now + kAvoided;
}

}  // namespace muster::local
