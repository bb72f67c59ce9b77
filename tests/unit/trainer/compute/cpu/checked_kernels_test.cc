#include "trainer/compute/cpu/check/checked_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tests/unit/trainer/compute/cpu/plain_kernels.h"
#include "trainer/compute/cpu/check/questions.h"
#include "trainer/host/arithmetic.h"

namespace muster::compute::cpu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class KernelsTest : public ::testing::TestWithParam<host::InstructionSet> {
 protected:
  host::InstructionSet set() const { return GetParam(); }
};

// Every kernel against plain code, over each width of a vector's part and of several vectors.
TEST_P(KernelsTest, AnswerAsPlainCodeDoes) {
  const Kernels plain = plain_kernels();
  const Kernels& table = kernels(set());
  for (const Question& question : questions()) {
    if (!question.is_in(table)) continue;
    for (int64_t columns = 1; columns <= 3 * table.lanes + 1; ++columns) {
      for (const int64_t rows : {1, 3, 34}) {
        if (rows == 34 && columns % 7 != 0) continue;  // more rows than a word has bits
        for (const int64_t padding : {0, 3}) {
          for (const bool accumulate : {false, true}) {
            const Extent extent{rows, columns, padding, accumulate};
            Sheet expected({plain, plain_arithmetic(), table.lanes, extent});
            Sheet found({table, host::arithmetic(set()), table.lanes, extent});
            question.ask(expected);
            question.ask(found);
            ASSERT_EQ(Sheet::difference(expected, found), "")
                << question.kernel << " of " << rows << " rows, " << columns << " columns, "
                << padding << " floats behind each, " << (accumulate ? "added" : "written");
          }
        }
      }
    }
  }
}

// The sets that are compared with the generic one when a program starts.
class ComparedKernelsTest : public KernelsTest {};

TEST_P(ComparedKernelsTest, AreFoundRight) {
  EXPECT_EQ(why_wrong(kernels(set()), set()), "");
}

// A kernel in place of the member, which does nothing.
template <auto kMember>
struct Idle;
template <typename Result, typename... Arguments, Result (*Kernels::*kMember)(Arguments...)>
struct Idle<kMember> {
  static Result kernel(Arguments...) { return Result(); }
};

TEST_P(ComparedKernelsTest, ThatDoNothingAreFoundByName) {
  int64_t found = 0;
#define MUSTER_TRY(member)                                            \
  if (Kernels table = kernels(set()); table.member != nullptr) {      \
    table.member = Idle<&Kernels::member>::kernel;                    \
    EXPECT_THAT(why_wrong(table, set()), StartsWith(#member " of ")); \
    ++found;                                                          \
  }
  MUSTER_KERNELS(MUSTER_TRY)
#undef MUSTER_TRY
  EXPECT_GE(found, kKernels - 5);
}

// The kernel of the member, which writes where it must add.
template <auto kMember>
struct Forgetful;
template <typename... Arguments, void (*Kernels::*kMember)(Arguments...)>
struct Forgetful<kMember> {
  static void kernel(Arguments... arguments) {
    const auto right = kernels(host::instruction_sets().back()).*kMember;
    std::tuple<std::remove_cvref_t<Arguments>...> mine(arguments...);
    auto& last = std::get<sizeof...(Arguments) - 1>(mine);
    if constexpr (requires { last.accumulate; }) {
      last.accumulate = false;
    } else {
      last = false;
    }
    std::apply(right, mine);
  }
};

TEST(Kernels, ThatForgetToAddAreFoundByName) {
  const host::InstructionSet set = host::instruction_sets().back();
  if (set == host::InstructionSet::generic) GTEST_SKIP() << "others are compared with this set";
#define MUSTER_TRY(member)                                                               \
  {                                                                                      \
    Kernels table = kernels(set);                                                        \
    table.member = Forgetful<&Kernels::member>::kernel;                                  \
    EXPECT_THAT(why_wrong(table, set),                                                   \
                AllOf(StartsWith(#member " of "), HasSubstr("added to what is there"))); \
  }
  MUSTER_TRY(gemm)
  MUSTER_TRY(transpose_back)
  MUSTER_TRY(depthwise_input_gradient_row)
  MUSTER_TRY(relu_gradient)
  MUSTER_TRY(relu6_gradient)
  MUSTER_TRY(sigmoid_gradient)
  MUSTER_TRY(copy)
  MUSTER_TRY(dropout)
  MUSTER_TRY(normalize_gradient)
  MUSTER_TRY(scale_gradient)
  MUSTER_TRY(softmax_gradient)
#undef MUSTER_TRY
}

// A kernel that writes one float behind its last column.
TEST_P(ComparedKernelsTest, ThatWriteTooMuchAreFound) {
  Kernels table = kernels(set());
  table.sum_rows = [](int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out) {
    generic_kernels().sum_rows(rows, columns, in, ldi, out);
    out[columns] = 77;
  };
  EXPECT_THAT(why_wrong(table, set()), StartsWith("sum_rows of "));
}

std::vector<host::InstructionSet> compared_sets() {
  const std::vector<host::InstructionSet> sets = host::instruction_sets();
  return {sets.begin() + 1, sets.end()};
}

std::string name_of(const ::testing::TestParamInfo<host::InstructionSet>& info) {
  return host::name_of(info.param);
}

INSTANTIATE_TEST_SUITE_P(Sets, KernelsTest, ::testing::ValuesIn(host::instruction_sets()), name_of);
INSTANTIATE_TEST_SUITE_P(Sets, ComparedKernelsTest, ::testing::ValuesIn(compared_sets()), name_of);
// A processor may have no set but the generic one.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ComparedKernelsTest);

}  // namespace
}  // namespace muster::compute::cpu
