#include "trainer/checkpoint/store/trial.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;

TEST(TryStorage, LeavesNothingBehind) {
  const test::TemporaryFolder folder;
  try_storage(folder.path() / "checkpoints");
  EXPECT_TRUE(fs::is_empty(folder.path()));
  fs::create_directories(folder.path() / "checkpoints");
  write_file_atomically(folder.path() / "checkpoints/checkpoint", "known");
  try_storage(folder.path() / "checkpoints");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "checkpoints"), {}), 1);
}

TEST(TryStorage, RefusesAPlaceThatNoRestartMends) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder.path() / "file", "where the folder should be");
  try {
    try_storage(folder.path() / "file" / "checkpoints");
    FAIL();
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kBadConfig);
    EXPECT_THAT(error.what(), testing::HasSubstr((folder.path() / "file").string()));
  }
}

// Sets a limit of this process while it lives.
class Limit {
 public:
  Limit(int resource, rlim_t most) : resource_(resource), handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(resource_, &before_);
    const rlimit limit{most, before_.rlim_max};
    setrlimit(resource_, &limit);
  }
  ~Limit() {
    setrlimit(resource_, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  const int resource_;
  sighandler_t handler_;
  rlimit before_{};
};

// A limit of this process says nothing of the storage: a process with a higher one may go on here.
TEST(TryStorage, DoesNotBlameTheStorageForALimitOfTheProcess) {
  const test::TemporaryFolder folder;
  const struct {
    int resource;
    const char* words;
  } limits[] = {{RLIMIT_NOFILE, "(ulimit -n)"}, {RLIMIT_FSIZE, "(ulimit -f)"}};
  for (const auto& [resource, words] : limits) {
    try {
      const Limit limit(resource, 0);
      try_storage(folder.path() / "checkpoints");
      ADD_FAILURE() << "no error for " << words;
    } catch (const WriteError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(words));
      EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("expected a storage")));
    }
    EXPECT_TRUE(fs::is_empty(folder.path())) << words;
  }
}

}  // namespace
}  // namespace muster::checkpoint
