#include "operator/kube/cache/reflector.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::kube {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string pod(const std::string& name, const std::string& version) {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"team","resourceVersion":")" +
         version + R"("}})";
}
std::string event(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}";
}
Response page(const std::string& items, const std::string& version, const std::string& next = "") {
  return answer(200, R"({"metadata":{"resourceVersion":")" + version + R"(","continue":")" + next +
                         R"("},"items":[)" + items + "]}");
}
const std::string kExpired =
    R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})";

StreamEnd end(StreamEnd::Reason reason, int status = 200, std::string body = {}) {
  StreamEnd end;
  end.reason = reason;
  end.status = status;
  end.body = std::move(body);
  end.error = "the connection broke";
  return end;
}

// A server played by two scripts: what lists and watches get, in turn. Stops at their end.
class ReflectorTest : public ::testing::Test {
 protected:
  struct Watch {
    std::vector<std::string> lines;
    StreamEnd end;
  };

  void run() {
    Reflector::Settings settings;
    settings.resource = pods();
    settings.name_space = "team";
    settings.label_selector = "muster.dev/job";
    settings.page = page_;
    settings.page_bytes = page_bytes_;
    Reflector reflector(
        transport_, store_, settings,
        [this](const std::string& trouble, milliseconds) { troubles_.push_back(trouble); },
        [this](milliseconds pause, const std::stop_token& stop) {
          pauses_.push_back(pause);
          return !stop.stop_requested();
        },
        [this] { return random_; });
    EXPECT_FALSE(reflector.synced());
    reflector.run(stop_.get_token());
    synced_ = reflector.synced();
  }

  // "list", "list continue=x", "watch from=7", as they were asked for.
  std::vector<std::string> asked() const {
    std::vector<std::string> result;
    for (const Request& request : transport_.requests()) {
      EXPECT_EQ(request.path, "/api/v1/namespaces/team/pods");
      EXPECT_EQ(query(request, "labelSelector"), "muster.dev/job");
      if (query(request, "watch") == "true") {
        EXPECT_EQ(query(request, "allowWatchBookmarks"), "true");
        result.push_back("watch from=" + query(request, "resourceVersion"));
      } else {
        const std::string next = query(request, "continue");
        result.push_back("list limit=" + query(request, "limit") +
                         (next.empty() ? "" : " continue=" + next));
      }
    }
    return result;
  }

  std::vector<std::string> lists_asked() const {
    std::vector<std::string> result = asked();
    std::erase_if(result, [](const std::string& one) { return !one.starts_with("list"); });
    return result;
  }

  int page_ = 2;
  size_t page_bytes_ = 1 << 20;
  std::deque<Response> lists_;
  std::deque<Watch> watches_;
  uint64_t random_ = 0;
  std::vector<std::string> troubles_;
  std::vector<milliseconds> pauses_;
  bool synced_ = false;
  std::stop_source stop_;
  Store<Pod> store_;
  FakeTransport transport_{
      [this](const Request&) {
        if (lists_.empty()) {
          stop_.request_stop();
          return Response();
        }
        const Response response = lists_.front();
        lists_.pop_front();
        return response;
      },
      [this](const Request&, const Transport::OnLine& on_line, const std::stop_token&) {
        if (watches_.empty()) {
          stop_.request_stop();
          return end(StreamEnd::Reason::cancelled);
        }
        const Watch watch = watches_.front();
        watches_.pop_front();
        for (const std::string& line : watch.lines) on_line(line);
        return watch.end;
      }};
};

TEST_F(ReflectorTest, ListsInPagesThenWatchesFromThere) {
  lists_ = {page(pod("a", "1") + "," + pod("b", "2"), "7", "more"), page(pod("c", "3"), "7")};
  watches_ = {{{event("ADDED", pod("d", "8")), event("DELETED", pod("a", "9"))},
               end(StreamEnd::Reason::closed)}};
  run();
  EXPECT_THAT(asked(), ElementsAre("list limit=2", "list limit=2 continue=more", "watch from=7",
                                   "watch from=9"));
  EXPECT_THAT(store_.keys(), ElementsAre("team/b", "team/c", "team/d"));
  EXPECT_TRUE(synced_);
  EXPECT_TRUE(troubles_.empty());
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(ReflectorTest, GoesOnFromABookmark) {
  lists_ = {page("", "7")};
  watches_ = {{{event("BOOKMARK", R"({"metadata":{"resourceVersion":"99"}})")},
               end(StreamEnd::Reason::closed)}};
  run();
  EXPECT_THAT(asked(), ElementsAre("list limit=2", "watch from=7", "watch from=99"));
}

TEST_F(ReflectorTest, ListsAgainWhenThePlaceIsForgotten) {
  lists_ = {page(pod("a", "1"), "7"), page(pod("b", "20"), "21"), page(pod("c", "30"), "31")};
  watches_ = {{{event("MODIFIED", pod("a", "8")), kExpired}, end(StreamEnd::Reason::closed)},
              {{}, end(StreamEnd::Reason::refused, 410, "gone")}};
  run();
  EXPECT_THAT(asked(), ElementsAre("list limit=2", "watch from=7", "list limit=2", "watch from=21",
                                   "list limit=2", "watch from=31"));
  EXPECT_THAT(store_.keys(), ElementsAre("team/c"));
  EXPECT_THAT(troubles_,
              ElementsAre("watch of pods: 410 Expired: too old", "watch of pods: 410 gone"));
}

TEST_F(ReflectorTest, ListsAgainSoonWhereTheServerHasForgottenThePlaceWhileItWasAway) {
  lists_ = {page("", "7"), page("", "21")};
  watches_ = std::deque<Watch>(6, Watch{{}, end(StreamEnd::Reason::lost)});
  watches_.push_back({{kExpired}, end(StreamEnd::Reason::closed)});
  run();
  EXPECT_EQ(pauses_[5], milliseconds(3200));
  EXPECT_EQ(pauses_[6], milliseconds(100));
}

TEST_F(ReflectorTest, ABrokenWatchGoesOnWhereItWasWithoutAList) {
  lists_ = {page("", "7")};
  watches_ = {{{event("ADDED", pod("a", "8"))}, end(StreamEnd::Reason::lost)},
              {{}, end(StreamEnd::Reason::lost)},
              {{}, end(StreamEnd::Reason::silent)},
              {{}, end(StreamEnd::Reason::refused, 429, "slowly")},
              {{event("ADDED", pod("b", "9"))}, end(StreamEnd::Reason::lost)}};
  run();
  EXPECT_THAT(asked(), ElementsAre("list limit=2", "watch from=7", "watch from=8", "watch from=8",
                                   "watch from=8", "watch from=8", "watch from=9"));
  EXPECT_THAT(pauses_, ElementsAre(milliseconds(100), milliseconds(200), milliseconds(400),
                                   milliseconds(800), milliseconds(100)));
  EXPECT_THAT(troubles_[0], "watch of pods: the connection broke");
  EXPECT_THAT(troubles_[3], "watch of pods: 429 slowly");
}

TEST_F(ReflectorTest, PausesGrowWithChanceUpToALongestAndHonourRetryAfterUpToAMinute) {
  lists_ = std::deque<Response>(12, refusal(500, "InternalError", "etcd"));
  lists_.push_back(refusal(429, "TooManyRequests", "later"));
  lists_.back().retry_after = std::chrono::seconds(30);
  lists_.push_back(lists_.back());
  lists_.back().retry_after = std::chrono::hours(24);
  random_ = 49;
  run();
  EXPECT_EQ(pauses_[0], milliseconds(149));
  EXPECT_EQ(pauses_[1], milliseconds(249));
  EXPECT_EQ(pauses_[11], milliseconds(10'049));
  EXPECT_EQ(pauses_[12], milliseconds(30'049));
  EXPECT_EQ(pauses_[13], milliseconds(60'049));
  EXPECT_EQ(troubles_[0], "list of pods: 500 InternalError: etcd");
  EXPECT_FALSE(synced_);
}

TEST_F(ReflectorTest, PagesThatExpireAreAskedForAllAtOnce) {
  lists_ = {page(pod("a", "1"), "7", "more"), refusal(410, "Expired", "too old"),
            page(pod("b", "2") + "," + pod("c", "3"), "9")};
  run();
  EXPECT_THAT(asked(), ElementsAre("list limit=2", "list limit=2 continue=more",
                                   "list limit=", "watch from=9"));
  EXPECT_THAT(store_.keys(), ElementsAre("team/b", "team/c"));
}

TEST_F(ReflectorTest, PagesFollowTheSizeOfObjects) {
  page_ = 50;
  page_bytes_ = 40'000;
  const std::string small = pod("a", "1"), large = pod(std::string(16'000, 'b'), "2");
  lists_ = {page(small, "7", "x"), page(small, "7", "x"),
            page(large, "7", "x"), page(large + "," + large + "," + large, "7", "x"),
            page(small, "7", "x"), page(small, "7")};
  run();
  // 16,000 bytes and more for 50 objects, then 48,000 and more for as many; less for each again.
  EXPECT_THAT(lists_asked(), ElementsAre("list limit=16", "list limit=32 continue=x",
                                         "list limit=50 continue=x", "list limit=50 continue=x",
                                         "list limit=41 continue=x", "list limit=50 continue=x"));
}

// A server that is short of breath for a moment says nothing about the size of pages.
TEST_F(ReflectorTest, AFewFailuresLeaveLargePages) {
  page_ = 500;
  lists_ = {refusal(500, "InternalError", "no leader"),
            refusal(500, "InternalError", "no leader"),
            page(pod("a", "1"), "7", "x"),
            page(pod("b", "1"), "7", "x"),
            page(pod("c", "1"), "7", "x"),
            page(pod("d", "1"), "7", "x"),
            page(pod("e", "1"), "7")};
  run();
  EXPECT_THAT(lists_asked(), ElementsAre("list limit=16", "list limit=16", "list limit=16",
                                         "list limit=32 continue=x", "list limit=64 continue=x",
                                         "list limit=125 continue=x", "list limit=125 continue=x"));
}

TEST_F(ReflectorTest, AnAnswerThatIsTooMuchIsAskedForInHalves) {
  page_ = 8;
  const auto too_much = [](Phase phase) {
    Response response;
    response.phase = phase;
    response.error = "more than fits";
    return response;
  };
  lists_ = {too_much(Phase::reading),
            too_much(Phase::answering),
            answer(413, "too large"),
            refusal(504, "Timeout", "too late"),
            page(pod("a", "1"), "7", "more"),
            answer(200, "{\"items\":["),
            page(pod("a", "1"), "7", "more"),
            page(pod("b", "2"), "7"),
            page("", "9"),
            page("", "11"),
            page("", "13"),
            page("", "15")};
  watches_ = std::deque<Watch>(4, Watch{{kExpired}, end(StreamEnd::Reason::closed)});
  run();
  EXPECT_THAT(
      lists_asked(),
      ElementsAre("list limit=8", "list limit=4", "list limit=2", "list limit=1", "list limit=1",
                  "list limit=1 continue=more", "list limit=1", "list limit=1 continue=more",
                  "list limit=2", "list limit=4", "list limit=8", "list limit=8"));
  EXPECT_EQ(troubles_[0], "list of pods: more than fits");
}

TEST_F(ReflectorTest, AServerThatIsNotThereOrRefusesIsNotAskedForLess) {
  Response nobody;
  nobody.phase = Phase::connecting;
  lists_ = {nobody, refusal(429, "TooManyRequests", "later"), answer(503, "no backend"),
            refusal(403, "Forbidden", "no role"), page("", "7")};
  run();
  EXPECT_THAT(asked(), ElementsAre("list limit=2", "list limit=2", "list limit=2", "list limit=2",
                                   "list limit=2", "watch from=7"));
}

// Neither way may be the only one that is tried for ever.
TEST_F(ReflectorTest, AllAtOnceThatIsTooMuchIsAskedForInPagesAgain) {
  Response too_much;
  too_much.phase = Phase::reading;
  lists_ = {page(pod("a", "1"), "7", "more"), refusal(410, "Expired", "too old"), too_much,
            page(pod("b", "2"), "9")};
  run();
  EXPECT_THAT(asked(), ElementsAre("list limit=2", "list limit=2 continue=more",
                                   "list limit=", "list limit=2", "watch from=9"));
}

TEST_F(ReflectorTest, WhatCannotBeReadIsSaidAndInNobodysWay) {
  const std::string unreadable =
      R"({"metadata":{"name":"x","namespace":"team","resourceVersion":"8"},"status":7})";
  lists_ = {page(pod("a", "1") + "," + unreadable, "7")};
  watches_ = {{{event("MODIFIED", unreadable), event("ADDED", pod("b", "9"))},
               end(StreamEnd::Reason::closed)}};
  run();
  EXPECT_THAT(asked(), ElementsAre("list limit=2", "watch from=7", "watch from=9"));
  EXPECT_THAT(store_.keys(), ElementsAre("team/a", "team/b"));
  EXPECT_THAT(troubles_, ElementsAre(HasSubstr("list of pods: team/x is passed over: "),
                                     HasSubstr("watch of pods: team/x is passed over: ")));
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(ReflectorTest, AnEventThatCannotBeReadIsMadeUpForByAList) {
  lists_ = {page("", "7"), page(pod("a", "8"), "9")};
  watches_ = {{{R"({"type":"ADDED","object":{"metad)"}, end(StreamEnd::Reason::closed)}};
  run();
  EXPECT_THAT(asked(), ElementsAre("list limit=2", "watch from=7", "list limit=2", "watch from=9"));
  EXPECT_THAT(troubles_[0], HasSubstr("expected a watch event"));
  EXPECT_THAT(store_.keys(), ElementsAre("team/a"));
}

TEST_F(ReflectorTest, AnAnswerThatIsNoListIsTriedAgain) {
  lists_ = {answer(200, "<html>"), page(pod("a", "1"), "7")};
  run();
  EXPECT_THAT(troubles_, ElementsAre(HasSubstr("list of pods: expected a list")));
  EXPECT_TRUE(synced_);
}

TEST_F(ReflectorTest, AServerThatClosesEveryWatchAtOnceIsNotAskedAllTheTime) {
  lists_ = {page("", "7")};
  watches_ = std::deque<Watch>(3, Watch{{}, end(StreamEnd::Reason::closed)});
  run();
  EXPECT_THAT(pauses_, ElementsAre(milliseconds(100), milliseconds(200), milliseconds(400)));
  EXPECT_TRUE(troubles_.empty());
}

TEST_F(ReflectorTest, WatchesLastForDifferentTimes) {
  lists_ = {page("", "7")};
  random_ = 12;
  run();
  EXPECT_EQ(query(transport_.requests()[1], "timeoutSeconds"), "312");
}

TEST(ReflectorThread, WhoWaitsForTheFirstListIsToldOrStopped) {
  Store<Pod> store;
  FakeTransport transport(
      [](const Request&) { return page("", "7"); },
      [](const Request&, const Transport::OnLine&, const std::stop_token& stop) {
        while (!stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
        return end(StreamEnd::Reason::cancelled);
      });
  Reflector::Settings settings;
  settings.resource = pods();
  Reflector reflector(transport, store, settings, [](const std::string&, milliseconds) {});
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_FALSE(reflector.wait_synced(stopped.get_token()));
  std::jthread thread([&](const std::stop_token& stop) { reflector.run(stop); });
  EXPECT_TRUE(reflector.wait_synced({}));
}

}  // namespace
}  // namespace muster::kube
