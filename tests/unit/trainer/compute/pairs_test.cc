// Products of pairs of bfloat16, against float64 products of the rounded factors.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/cpu/check/checked_kernels.h"
#include "trainer/host/arithmetic.h"

namespace muster::compute::testing {
namespace {

struct PairsMatrix {
  PairsMatrix(int64_t rows, int64_t columns, uint64_t number) : rows(rows), columns(columns) {
    for (int64_t i = 0; i < rows * columns; ++i)
      values.push_back(fixture_value(number, static_cast<uint64_t>(i), 1.0f));
  }
  // Returns the element as it is after rounding.
  double rounded(int64_t r, int64_t c) const {
    float one = values[static_cast<size_t>(r * columns + c)];
    host::arithmetic().round_to_bfloat16(1, &one, &one);
    return static_cast<double>(one);
  }

  int64_t rows, columns;
  std::vector<float> values;
};

struct Sizes {
  int64_t m, n, k;
};

class Pairs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels_.gemm_pairs == nullptr) GTEST_SKIP() << "needs a CPU with AVX-512 BF16";
  }
  static int64_t half_of(int64_t count) { return (count + 1) / 2; }

  // Checks c = a b, and then c += a b, where multiply(accumulate) computes them into c.
  template <class Multiply>
  static void check(const Sizes& sizes, const PairsMatrix& a, bool a_turned, const PairsMatrix& b,
                    const std::vector<float>& c, const Multiply& multiply) {
    for (const bool again : {false, true}) {
      multiply(again);
      for (int64_t i = 0; i < sizes.m; ++i) {
        for (int64_t j = 0; j < sizes.n; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < sizes.k; ++p)
            sum += (a_turned ? a.rounded(p, i) : a.rounded(i, p)) * b.rounded(p, j);
          ASSERT_NEAR(c[static_cast<size_t>(i * sizes.n + j)], again ? 2 * sum : sum,
                      1e-6 * static_cast<double>(sizes.k) + 1e-6)
              << sizes.m << " " << sizes.n << " " << sizes.k << " " << again;
        }
      }
    }
  }

  const cpu::Kernels& kernels_ = cpu::kernels();
  const std::vector<Sizes> sizes_ = {{1, 1, 1},   {2, 3, 2},    {9, 17, 5},    {8, 32, 64},
                                     {13, 33, 7}, {130, 47, 9}, {35, 100, 301}};
};

TEST_F(Pairs, MultiplyRows) {
  for (const Sizes& s : sizes_) {
    const PairsMatrix a(s.m, s.k, 1), b(s.k, s.n, 2);
    const int64_t half = half_of(s.k);
    std::vector<float> left(static_cast<size_t>(s.m * half), NAN);
    std::vector<float> right(static_cast<size_t>(half * s.n), NAN);
    std::vector<float> c(static_cast<size_t>(s.m * s.n), NAN);
    kernels_.pack_rows(s.m, s.k, a.values.data(), s.k, left.data(), half);
    kernels_.pack_row_pairs(s.k, s.n, b.values.data(), s.n, right.data(), s.n);
    check(s, a, false, b, c, [&](bool accumulate) {
      kernels_.gemm_pairs(
          {s.m, s.n, half, left.data(), half, 1, right.data(), s.n, c.data(), s.n, accumulate});
    });
  }
}

TEST_F(Pairs, MultiplyColumns) {
  for (const Sizes& s : sizes_) {
    const PairsMatrix a(s.k, s.m, 3), b(s.k, s.n, 4);
    const int64_t half = half_of(s.k);
    std::vector<float> left(static_cast<size_t>(half * s.m), NAN);
    std::vector<float> right(static_cast<size_t>(half * s.n), NAN);
    std::vector<float> c(static_cast<size_t>(s.m * s.n), NAN);
    kernels_.pack_row_pairs(s.k, s.m, a.values.data(), s.m, left.data(), s.m);
    kernels_.pack_row_pairs(s.k, s.n, b.values.data(), s.n, right.data(), s.n);
    check(s, a, true, b, c, [&](bool accumulate) {
      kernels_.gemm_pairs(
          {s.m, s.n, half, left.data(), 1, s.m, right.data(), s.n, c.data(), s.n, accumulate});
    });
  }
}

}  // namespace
}  // namespace muster::compute::testing
