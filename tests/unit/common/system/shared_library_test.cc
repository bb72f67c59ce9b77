#include "common/system/shared_library.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "tests/unit/common/error_of.h"

namespace muster {
namespace {

TEST(SharedLibrary, FindsFunctions) {
  double (*cosine)(double) = nullptr;
  const SharedLibrary library("tests", "mathematics", "libm.so.6");
  library.find(cosine, "cos");
  EXPECT_EQ(cosine(0), 1);
}

TEST(SharedLibrary, NamesWhatIsMissingAndWhoNeedsIt) {
  EXPECT_THAT(test::error_of<Unavailable>(
                  [] { const SharedLibrary library("tests", "nothing", "libnothing.so"); }),
              testing::StartsWith("tests: expected nothing as libnothing.so in the loader's path"));
  EXPECT_EQ(test::error_of<Unavailable>([] {
              void (*none)() = nullptr;
              SharedLibrary("tests", "mathematics", "libm.so.6").find(none, "no_function");
            }),
            "tests: expected the function no_function in libm.so.6, found none");
}

}  // namespace
}  // namespace muster
