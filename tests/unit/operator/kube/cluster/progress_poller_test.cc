#include "operator/kube/cluster/progress_poller.h"

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
  ProgressPoller poller_{{1ms, 1ms, 4ms, 1ms},
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

TEST_F(ProgressPollerTest, OneThatHasEndedMissesNobody) {
  answer("a:1", R"({"step": 3, "missing": ["worker-0"]})");
  poller_.watch("lab/mnist", "uid", "a:1");
  wait_until([&] { return news_ == 1; });
  ASSERT_TRUE(poller_.group("lab/mnist").missing.contains("worker-0"));
  poller_.conclude("lab/mnist", {{"step", 9}});
  EXPECT_EQ(poller_.group("lab/mnist"), ProgressPoller::Group());
  EXPECT_EQ(poller_.progress("lab/mnist")["step"], 9);
}

// One at a time is asked. While the first one thinks, everybody's time comes.
TEST(ProgressPollerOrder, AsksThoseWhoAnswerBeforeThoseWhoDidNot) {
  std::mutex mutex;
  std::condition_variable changed;
  bool thinks = false, has_thought = false;
  std::vector<std::string> asked;
  ProgressPoller poller(
      {1ms, 1ms, 1ms}, [](const std::string&) {},
      [&](const std::string& address) -> std::string {
        std::unique_lock lock(mutex);
        asked.push_back(address);
        changed.notify_all();
        if (address == "thinking:1") {
          thinks = true;
          changed.wait(lock, [&] { return has_thought; });
        }
        if (address.starts_with("silent")) throw Unavailable("no answer");
        return R"({"step": 1})";
      });
  std::jthread thread([&](const std::stop_token& stop) { poller.run(stop); });
  const auto wait_until = [&](auto condition) {
    std::unique_lock lock(mutex);
    changed.wait(lock, condition);
  };
  const auto has_asked = [&](const std::string& address) {
    return std::ranges::find(asked, address) != asked.end();
  };
  poller.watch("lab/a", "uid", "silent:1");
  poller.watch("lab/b", "uid", "silent:2");
  wait_until([&] { return has_asked("silent:1") && has_asked("silent:2"); });
  poller.watch("lab/c", "uid", "thinking:1");
  wait_until([&] { return thinks; });
  std::this_thread::sleep_for(20ms);  // the silent ones are due by now
  poller.watch("lab/d", "uid", "answers:1");
  poller.watch("lab/e", "uid", "answers:2");
  size_t before = 0;
  {
    const std::lock_guard lock(mutex);
    before = asked.size();
    has_thought = true;
    changed.notify_all();
  }
  wait_until([&] { return asked.size() >= before + 2; });
  const std::lock_guard lock(mutex);
  EXPECT_TRUE(asked[before].starts_with("answers")) << asked[before];
}

}  // namespace
}  // namespace muster::kube
