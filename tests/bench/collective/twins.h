#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

namespace muster::bench {

// Where two processes meet: in memory that both map, made before the second one is.
class Meeting {
 public:
  static constexpr int kTwins = 2;

  // Comes back when both have called it, to within nanoseconds if each has a core.
  void barrier();
  // What both give, once they have: the greater one, the mean, the other's.
  double greatest(int twin, double value);
  double mean(int twin, double value);
  std::string other(int twin, const std::string& text);

 private:
  std::array<double, kTwins> all(int twin, double value);

  static constexpr size_t kText = 4096;
  std::atomic<unsigned> arrived_{0};
  std::array<double, kTwins> values_{};
  char text_[kTwins][kText] = {};
  size_t size_[kTwins] = {};
};

// Runs `work` in two processes, this one being twin 0, and returns what it returns here; the other
// one does not outlive the call. Precondition: no threads yet. Throws std::runtime_error where the
// other one fails.
double in_twins(const std::function<double(int twin, Meeting&)>& work);

// A twin's side of what is measured.
struct Side {
  std::function<void()> prepare;  // not timed
  std::function<void()> call;
};

// Median seconds of `repeats` calls that both begin at the same time, of each the slower twin's;
// after a fifth as many that are not timed.
double median_seconds(int twin, Meeting& meeting, size_t repeats, const Side& side);

}  // namespace muster::bench
