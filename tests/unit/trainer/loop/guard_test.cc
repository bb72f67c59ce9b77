#include "trainer/loop/guard.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"

namespace muster::loop {
namespace {

struct Case {
  const char* name;
  std::function<void()> end;
  int exit_code;
  std::vector<std::string> told;
};

TEST(RunGuarded, TurnsErrorsIntoExitCodes) {
  const Case cases[] = {
      {"success", [] {}, kSuccess, {}},
      {"input", [] { throw Invalid("a\nb", kBadConfig); }, kBadConfig, {"a", "b"}},
      {"writing", [] { throw WriteError("full"); }, kCannotWrite, {"full"}},
      {"a peer", [] { throw Unavailable("gone"); }, kUnavailable, {"gone"}},
      {"a lost GPU", [] { throw DeviceError("lost", true); }, kFaulty, {"lost"}},
      {"a GPU's work", [] { throw DeviceError("address", false); }, kUnavailable, {"address"}},
      {"memory",
       [] { throw std::bad_alloc(); },
       kUnavailable,
       {"out of memory: Cannot allocate memory (of the machine, or ulimit -v)"}},
      {"a thread",
       [] { throw std::system_error(EAGAIN, std::generic_category()); },
       kUnavailable,
       {"cannot start a thread: Resource temporarily unavailable (of the machine, or ulimit -u or "
        "-v)"}},
      {"another error of the system",
       [] { throw std::system_error(EDOM, std::generic_category()); },
       kInternal,
       {"a bug of ours: Numerical argument out of domain"}},
      {"a bug", [] { throw std::logic_error("x"); }, kInternal, {"a bug of ours: x"}},
  };
  for (const Case& one : cases) {
    std::vector<std::string> told;
    const auto body = [&] {
      one.end();
      return static_cast<int>(kSuccess);
    };
    EXPECT_EQ(run_guarded(body, [&](const std::string& line) { told.push_back(line); }),
              one.exit_code)
        << one.name;
    EXPECT_EQ(told, one.told) << one.name;
  }
}

}  // namespace
}  // namespace muster::loop
