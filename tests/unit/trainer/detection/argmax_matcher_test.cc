#include "trainer/detection/argmax_matcher.h"

#include <gtest/gtest.h>

#include "tests/unit/trainer/detection/support.h"

namespace muster::detection::testing {
namespace {

using Rows = std::vector<std::vector<float>>;

std::vector<int32_t> match(ArgmaxMatcher& matcher, size_t columns, const Rows& rows,
                           const std::vector<bool>& silent = {}) {
  matcher.start();
  for (size_t i = 0; i < rows.size(); ++i) matcher.add_row(rows[i], silent.empty() || !silent[i]);
  std::vector<int32_t> matches(columns, 99);
  matcher.finish(matches);
  return matches;
}

TEST(ArgmaxMatcher, MatchesByThresholdsAndThenForEachRow) {
  constexpr auto kNo = kUnmatched;
  constexpr auto kIg = kIgnored;
  const MatcherSettings plain{0.5f, 0.5f, true, false}, forced{0.5f, 0.5f, true, true},
      two{0.7f, 0.3f, true, false}, two_inverted{0.7f, 0.3f, false, false},
      two_forced{0.7f, 0.3f, true, true};
  struct Case {
    const char* what;
    MatcherSettings settings;
    Rows rows;
    std::vector<bool> silent;
    std::vector<int32_t> expected;
  };
  const std::vector<Case> cases = {
      {"no rows", forced, {}, {}, {kNo, kNo, kNo}},
      {"the largest of a column", plain, {{0.6f, 0.5f, 0}, {0.7f, 0.4f, 0.9f}}, {}, {1, 0, 1}},
      {"equal: the first row", plain, {{0.6f, 0.1f, 0}, {0.6f, 0.1f, 0.5f}}, {}, {0, kNo, 1}},
      {"the threshold itself matches", plain, {{0.5f, 0.49999f, 0.50001f}}, {}, {0, kNo, 0}},
      {"between two thresholds", two, {{0.8f, 0.7f, 0.3f}, {0, 0.69f, 0.2f}}, {}, {0, 0, kIg}},
      {"below both", two, {{0.2f, 0.29f, 0.31f}}, {}, {kNo, kNo, kIg}},
      {"the other way round", two_inverted, {{0.2f, 0.31f, 0.71f}}, {}, {kIg, kNo, 0}},
      {"a row's best column", forced, {{0.1f, 0.3f, 0.2f}}, {}, {kNo, 0, kNo}},
      {"equal: the first column", forced, {{0.1f, 0.3f, 0.3f}}, {}, {kNo, 0, kNo}},
      {"taken from another row", forced, {{0.9f, 0.8f, 0}, {0.6f, 0.1f, 0}}, {}, {0, 0, kNo}},
      {"a lower row takes a column that another matches better",
       forced,
       {{0.6f, 0, 0}, {0.9f, 0, 0}},
       {},
       {0, kNo, kNo}},
      {"two rows that claim one column, and a third",
       forced,
       {{0, 0.2f, 0}, {0, 0.4f, 0.1f}, {0, 0, 0.1f}},
       {},
       {kNo, 0, 2}},
      {"an ignored column is claimed too", two_forced, {{0.1f, 0.5f, 0.4f}}, {}, {kNo, 0, kIg}},
      {"a row that claims nothing",
       forced,
       {{0.1f, 0.3f, 0.2f}, {0.6f, 0.1f, 0.1f}},
       {true, true},
       {1, kNo, kNo}},
      {"a row that is similar to nothing", forced, {{0, 0, 0}}, {}, {kNo, kNo, kNo}},
      {"NaN is the least", forced, {{kNan, 0.9f, kNan}, {0.6f, kNan, kNan}}, {}, {1, 0, kNo}},
  };
  for (const Case& one : cases) {
    ArgmaxMatcher matcher(one.settings, 3);
    EXPECT_EQ(match(matcher, 3, one.rows, one.silent), one.expected) << one.what;
    EXPECT_EQ(match(matcher, 3, one.rows, one.silent), one.expected) << one.what << ", again";
  }
}

// The definition, with the whole matrix in memory.
std::vector<int32_t> naive(const MatcherSettings& settings, size_t columns, const Rows& rows) {
  auto first_largest = [](const std::vector<float>& values) {
    size_t best = 0;
    for (size_t i = 1; i < values.size(); ++i)
      if (values[i] > values[best]) best = i;
    return best;
  };
  std::vector<int32_t> matches(columns);
  for (size_t column = 0; column < columns; ++column) {
    std::vector<float> values;
    for (const auto& row : rows) values.push_back(row[column]);
    const size_t best = first_largest(values);
    matches[column] = static_cast<int32_t>(best);
    if (values[best] < settings.matched_threshold) matches[column] = kIgnored;
    if (values[best] < settings.unmatched_threshold) matches[column] = kUnmatched;
  }
  for (size_t row = rows.size(); row-- > 0;)
    matches[first_largest(rows[row])] = static_cast<int32_t>(row);
  return matches;
}

TEST(ArgmaxMatcher, IsTheDefinition) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const size_t columns = 1 + static_cast<size_t>(random.below(40));
    Rows rows(1 + static_cast<size_t>(random.below(8)), std::vector<float>(columns));
    for (auto& row : rows)
      for (float& value : row) value = 0.1f * static_cast<float>(1 + random.below(9));
    const MatcherSettings settings{0.6f, 0.4f, true, true};
    ArgmaxMatcher matcher(settings, columns);
    ASSERT_EQ(match(matcher, columns, rows), naive(settings, columns, rows)) << i;
  }
}

}  // namespace
}  // namespace muster::detection::testing
