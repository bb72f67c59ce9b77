#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "trainer/compute/graph.h"
#include "trainer/compute/metrics/evaluator.h"

namespace muster::compute {

namespace {

class RankingMeasures : public Accumulator {
 public:
  RankingMeasures(size_t width, Measuring measuring)
      : width_(width), measuring_(std::move(measuring)) {}

  void add(const EvaluatedRows& rows) override {
    for (size_t row = 0; row < rows.batch.groups.size(); ++row) {
      const float output = rows.outputs[row * width_];
      has_nan_ |= std::isnan(output);
      groups_[rows.batch.groups[row]].push_back(
          {output, measuring_.in_unit(0, rows.batch.targets[row][0])});
    }
  }

  std::vector<Metric> metrics() const override {
    double count = 0, ndcg = 0, precision = 0, hits = 0;
    for (const auto& [number, rows] : groups_) {
      if (std::ranges::none_of(rows, &Ranked::is_relevant)) continue;
      count += 1;
      if (has_nan_) continue;  // nothing can be sorted by it
      std::vector<Ranked> ranked = rows, best = rows;
      std::ranges::stable_sort(ranked, std::greater(), &Ranked::output);
      for (Ranked& row : best) row.output = static_cast<float>(row.gain());
      std::ranges::stable_sort(best, std::greater(), &Ranked::gain);
      ndcg += cumulated_gain(ranked) / cumulated_gain(best);
      precision += average_precision(ranked);
      hits += std::ranges::any_of(first(ranked), &Ranked::is_relevant) ? 1 : 0;
    }
    if (count == 0) return {};
    if (has_nan_) ndcg = precision = hits = std::numeric_limits<double>::quiet_NaN();
    return {{"ndcg", ndcg / count},
            {"meanAveragePrecision", precision / count},
            {"hitRate", hits / count}};
  }

 private:
  struct Ranked {
    float output = 0;
    double target = 0;
    bool is_relevant() const { return target > 0; }
    double gain() const { return std::max(target, 0.0); }
  };

  std::span<const Ranked> first(const std::vector<Ranked>& ranked) const {
    return std::span(ranked).first(
        std::min(ranked.size(), static_cast<size_t>(measuring_.rank_at)));
  }

  double cumulated_gain(const std::vector<Ranked>& ranked) const {
    const size_t most = first(ranked).size();
    double sum = 0;
    for (size_t begin = 0, end = 0; begin < most; begin = end) {
      double gains = 0, shares = 0;
      for (; end < ranked.size() && ranked[end].output == ranked[begin].output; ++end) {
        gains += ranked[end].gain();
        if (end < most) shares += 1 / std::log2(static_cast<double>(end) + 2);
      }
      sum += gains / static_cast<double>(end - begin) * shares;
    }
    return sum;
  }

  double average_precision(const std::vector<Ranked>& ranked) const {
    const auto relevant = static_cast<size_t>(std::ranges::count_if(ranked, &Ranked::is_relevant));
    double sum = 0, found = 0, place = 0;
    for (const Ranked& row : first(ranked)) {
      place += 1;
      if (!row.is_relevant()) continue;
      found += 1;
      sum += found / place;
    }
    return sum / static_cast<double>(std::min(relevant, static_cast<size_t>(measuring_.rank_at)));
  }

  const size_t width_;  // outputs of a row, of which the first one ranks
  const Measuring measuring_;
  std::map<int32_t, std::vector<Ranked>> groups_;
  bool has_nan_ = false;
};

}  // namespace

Evaluator ranking_measures() {
  return {{{"ndcg", Better::higher},
           {"meanAveragePrecision", Better::higher},
           {"hitRate", Better::higher}},
          [](const Graph& graph, const Measuring& measuring) -> std::unique_ptr<Accumulator> {
            return std::make_unique<RankingMeasures>(static_cast<size_t>(graph.outputs()),
                                                     measuring);
          }};
}

}  // namespace muster::compute
