#include "tests/unit/trainer/simulation/schedule.h"

#include <algorithm>

namespace muster::simulation {

std::string text_of(const Deviations& deviations) {
  std::string text;
  for (const auto& [at, deviation] : deviations)
    text += " " + std::to_string(at) + static_cast<char>(deviation.fault) +
            std::to_string(deviation.argument);
  return text;
}

Deviations parse_deviations(std::istream& in, std::span<const Fault> possible) {
  Deviations deviations;
  int at = 0;
  char fault = 0;
  Deviation deviation;
  while (in >> at >> fault >> deviation.argument) {
    deviation.fault = static_cast<Fault>(fault);
    if (std::ranges::find(possible, deviation.fault) == possible.end())
      throw std::invalid_argument("no such fault: " + std::string(1, fault));
    deviations[at] = deviation;
  }
  return deviations;
}

Deviations random_deviations(Draws& draws, std::span<const Fault> possible, int longest, int most) {
  Deviations deviations;
  const int horizon = 30 + draws.below(longest);
  const int faults = draws.below(most);
  for (int i = 0; i < faults; ++i) {
    const int fault = 1 + draws.below(static_cast<int>(possible.size()) - 1);
    const int at = draws.below(horizon);
    deviations[at] = {possible[static_cast<size_t>(fault)], draws.below(64)};
  }
  // The share of events out of order, in percent: from a fair order to hardly any order at all.
  const int reorder = draws.below(3) * 25;
  for (int at = 0; at < horizon; ++at)
    if (draws.below(100) < reorder)
      deviations.try_emplace(at, Deviation{Fault::pick, draws.below(8)});
  return deviations;
}

std::vector<std::pair<int, Deviation>> all_faults(int events,
                                                  const std::map<Fault, int>& arguments) {
  std::vector<std::pair<int, Deviation>> all;
  for (int at = 0; at < events; ++at)
    for (const auto& [fault, count] : arguments)
      for (int argument = 0; argument < count; ++argument) all.push_back({at, {fault, argument}});
  return all;
}

bool leave_out(Deviations& failing, const std::function<bool(const Deviations&)>& fails) {
  bool shorter = false;
  for (size_t count = failing.size(); count > 0; count /= 2)
    for (size_t begin = 0; begin < failing.size();) {
      Deviations candidate = failing;
      const auto first = std::next(candidate.begin(), static_cast<ptrdiff_t>(begin));
      const size_t most = std::min(count, candidate.size() - begin);
      candidate.erase(first, std::next(first, static_cast<ptrdiff_t>(most)));
      if (fails(candidate)) {
        failing = candidate;
        shorter = true;
      } else {
        begin += count;
      }
    }
  return shorter;
}

}  // namespace muster::simulation
