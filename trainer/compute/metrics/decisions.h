#pragma once

#include <cstdint>
#include <optional>

namespace muster::compute {

// Counts of decisions whether samples belong to a class.
struct Decisions {
  int64_t belong = 0;  // samples of the class
  int64_t taken = 0;   // samples that were taken for the class
  int64_t both = 0;

  void add(bool belongs, bool is_taken) {
    belong += belongs ? 1 : 0;
    taken += is_taken ? 1 : 0;
    both += belongs && is_taken ? 1 : 0;
  }
  // Each is nothing if no sample belongs to the class.
  std::optional<double> precision() const { return share_of(both, taken); }
  std::optional<double> recall() const { return share_of(both, belong); }
  std::optional<double> f1() const { return share_of(2 * both, belong + taken); }

 private:
  std::optional<double> share_of(int64_t part, int64_t whole) const {
    if (belong == 0) return std::nullopt;
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

}  // namespace muster::compute
