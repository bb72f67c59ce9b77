#include "operator/kube/progress_poller.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "common/error.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

// Asked without a pause, a replica answers what a test says.
class ProgressPollerTest : public testing::Test {
 protected:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> answers_;  // by address; none: it does not answer
  std::map<std::string, int> asked_;
  int news_ = 0;
  ProgressPoller poller_{{1ms, 1ms, 4ms},
                         [this](const std::string&) {
                           const std::lock_guard lock(mutex_);
                           ++news_;
                           changed_.notify_all();
                         },
                         [this](const std::string& address) {
                           const std::lock_guard lock(mutex_);
                           ++asked_[address];
                           changed_.notify_all();
                           if (!answers_.contains(address)) throw Unavailable("no answer");
                           return answers_[address];
                         }};
  std::jthread first_{[this](const std::stop_token& stop) { poller_.run(stop); }};
  std::jthread second_{[this](const std::stop_token& stop) { poller_.run(stop); }};

  void answer(const std::string& address, const std::string& text) {
    const std::lock_guard lock(mutex_);
    answers_[address] = text;
  }
  template <class Condition>
  void wait_until(Condition condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, condition);
  }
  void wait_until_asked(const std::string& address, int more) {
    std::unique_lock lock(mutex_);
    const int enough = asked_[address] + more;
    changed_.wait(lock, [&] { return asked_[address] >= enough; });
  }
};

TEST_F(ProgressPollerTest, TellsWhatIsNew) {
  EXPECT_TRUE(poller_.progress("lab/mnist").is_null());
  answer("a:1", R"({"step": 3, "secret": "x"})");
  poller_.watch("lab/mnist", "uid", "a:1");
  wait_until([&] { return news_ == 1; });
  EXPECT_EQ(poller_.progress("lab/mnist"), Json::parse(R"({"step": 3})"));
  wait_until_asked("a:1", 5);
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(news_, 1) << "the same is no news";
  }
  answer("a:1", R"({"step": 4})");
  wait_until([&] { return news_ == 2; });
  EXPECT_EQ(poller_.progress("lab/mnist")["step"], 4);
}

TEST_F(ProgressPollerTest, KeepsWhatItKnowsWhenNoAnswerComes) {
  answer("a:1", R"({"step": 3})");
  poller_.watch("lab/mnist", "uid", "a:1");
  wait_until([&] { return news_ == 1; });
  poller_.watch("lab/mnist", "another", "b:1");
  wait_until_asked("b:1", 5);
  EXPECT_EQ(poller_.progress("lab/mnist")["step"], 3);
  for (const char* nonsense : {"", "no JSON", "[]", R"({"step": "many"})"}) {
    answer("b:1", nonsense);
    wait_until_asked("b:1", 3);
    EXPECT_EQ(poller_.progress("lab/mnist")["step"], 3) << nonsense;
  }
}

TEST_F(ProgressPollerTest, AsksNobodyElseMeanwhile) {
  answer("a:1", R"({"step": 3})");
  answer("b:1", R"({"step": 9})");
  poller_.watch("lab/mnist", "uid", "a:1");
  poller_.watch("lab/other", "uid", "b:1");
  wait_until([&] { return news_ == 2; });
  EXPECT_EQ(poller_.progress("lab/mnist")["step"], 3);
  EXPECT_EQ(poller_.progress("lab/other")["step"], 9);
  poller_.forget("lab/mnist");
  EXPECT_TRUE(poller_.progress("lab/mnist").is_null());
}

TEST_F(ProgressPollerTest, StopsAskingAtRest) {
  answer("a:1", R"({"step": 3})");
  poller_.watch("lab/mnist", "uid", "a:1");
  wait_until([&] { return news_ == 1; });
  poller_.rest("lab/mnist");
  answer("b:1", R"({"step": 1})");
  poller_.watch("lab/other", "uid", "b:1");
  wait_until([&] { return news_ == 2; });  // one question may have been under way till here
  const int before = [&] {
    const std::lock_guard lock(mutex_);
    return asked_["a:1"];
  }();
  wait_until_asked("b:1", 20);
  const std::lock_guard lock(mutex_);
  EXPECT_LE(asked_["a:1"], before + 1);
  EXPECT_EQ(poller_.progress("lab/mnist")["step"], 3) << "what was said last stays";
}

}  // namespace
}  // namespace muster::kube
