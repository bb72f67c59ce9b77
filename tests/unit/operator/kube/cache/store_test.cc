#include "operator/kube/cache/store.h"

#include <gmock/gmock.h>

#include "common/error.h"

namespace muster::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

std::string object(const std::string& name, const std::string& version,
                   const std::string& job = "mnist", const std::string& uid = "u") {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"team","uid":")" + uid +
         R"(","resourceVersion":")" + version + R"(","labels":{"job":")" + job + R"("}}})";
}
// Returns the object, of namespace team, as one of another namespace.
std::string in(const std::string& name_space, std::string object) {
  return object.replace(object.find("team"), 4, name_space);
}
std::string watch_event(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}";
}
std::string list_page(const std::string& items, const std::string& version,
                      const std::string& next = "") {
  return R"({"metadata":{"resourceVersion":")" + version + R"(","continue":")" + next +
         R"("},"items":[)" + items + "]}";
}

class StoreTest : public ::testing::Test {
 protected:
  void list(const std::vector<std::string>& pages) {
    store_.begin_list();
    for (const std::string& text : pages) store_.add_page(text);
    store_.end_list();
  }

  std::vector<std::string> changes_;
  Store<Pod> store_{
      "job", [this](const Pod* before, const Pod* after) {
        const auto version = [](const Pod* pod) {
          return pod == nullptr ? "-" : pod->meta.resource_version;
        };
        const Pod& any = after == nullptr ? *before : *after;
        changes_.push_back(any.meta.name + " " + version(before) + ">" + version(after));
      }};
};

TEST_F(StoreTest, AListTakesThePlaceOfWhatWasThere) {
  list({list_page(object("a", "1") + "," + object("b", "2"), "5", "more"),
        list_page(object("c", "3"), "5")});
  EXPECT_THAT(changes_, ElementsAre("a ->1", "b ->2", "c ->3"));
  changes_.clear();
  list({list_page(object("a", "1") + "," + object("c", "7"), "8")});
  EXPECT_THAT(changes_, ElementsAre("c 3>7", "b 2>-"));
  EXPECT_THAT(store_.keys(), ElementsAre("team/a", "team/c"));
}

TEST_F(StoreTest, AListOfOneNamespaceLeavesTheOthersAsTheyAre) {
  const auto team = store_.part("team"), lab = store_.part("lab"), labs = store_.part("labs");
  const auto list = [](Mirror& mirror, const std::string& items) {
    mirror.begin_list();
    mirror.add_page(list_page(items, "5"));
    mirror.end_list();
  };
  list(*team, object("a", "1"));
  list(*lab, in("lab", object("b", "2")));
  list(*labs, in("labs", object("c", "3")));
  EXPECT_THAT(store_.keys(), ElementsAre("lab/b", "labs/c", "team/a"));
  list(*lab, "");
  EXPECT_THAT(store_.keys(), ElementsAre("labs/c", "team/a"));
  team->apply(watch_event("DELETED", object("a", "9")));
  EXPECT_THAT(store_.keys(), ElementsAre("labs/c"));
}

TEST_F(StoreTest, AListThatDoesNotEndRemovesNothing) {
  list({list_page(object("a", "1"), "5")});
  store_.begin_list();
  store_.add_page(list_page(object("b", "2"), "6", "more"));
  EXPECT_THROW(store_.add_page("{\"items\":"), Unavailable);
  EXPECT_THAT(store_.keys(), ElementsAre("team/a", "team/b"));
  list({list_page(object("c", "3"), "7")});
  EXPECT_THAT(store_.keys(), ElementsAre("team/c"));
}

TEST_F(StoreTest, FollowsEvents) {
  EXPECT_EQ(store_.apply(watch_event("ADDED", object("a", "1"))).resource_version, "1");
  store_.apply(watch_event("MODIFIED", object("a", "2")));
  store_.apply(watch_event("BOOKMARK", R"({"metadata":{"resourceVersion":"9"}})"));
  EXPECT_EQ(store_.get("team/a")->meta.resource_version, "2");
  store_.apply(watch_event("DELETED", object("a", "10")));
  EXPECT_EQ(store_.get("team/a"), std::nullopt);
  EXPECT_THAT(changes_, ElementsAre("a ->1", "a 1>2", "a 2>-"));
  EXPECT_TRUE(store_.find("team", "mnist").empty());
}

TEST_F(StoreTest, WhatCannotBeReadStaysAsItWasUntilItIsDeleted) {
  list({list_page(object("a", "1") + "," + object("b", "2"), "5")});
  changes_.clear();
  const std::string unreadable =
      R"({"metadata":{"name":"a","namespace":"team","resourceVersion":"6"},"status":7})";
  store_.begin_list();
  EXPECT_THAT(store_.add_page(list_page(unreadable + "," + object("c", "3"), "6")).unread,
              ElementsAre(StartsWith("team/a is passed over: expected an object")));
  store_.end_list();
  EXPECT_THAT(changes_, ElementsAre("c ->3", "b 2>-"));
  EXPECT_EQ(store_.get("team/a")->meta.resource_version, "1");
  const Mirror::Seen seen = store_.apply(watch_event("MODIFIED", unreadable));
  EXPECT_THAT(seen.unread, StartsWith("team/a is passed over: "));
  EXPECT_EQ(seen.resource_version, "6");
  EXPECT_EQ(store_.get("team/a")->meta.resource_version, "1");
  EXPECT_EQ(store_.apply(watch_event("DELETED", unreadable)).unread, "");
  EXPECT_EQ(store_.get("team/a"), std::nullopt);
}

TEST_F(StoreTest, ALabelsValuesAreApartInEachNamespace) {
  list({list_page(object("b", "1") + "," + object("a", "1") + "," + in("lab", object("c", "1")) +
                      "," + object("d", "1", "other") + "," + object("e", "1", ""),
                  "5")});
  EXPECT_THAT(store_.labelled(), ElementsAre("lab/mnist", "team/mnist", "team/other"));
  EXPECT_EQ(store_.find("lab", "mnist").size(), 1U);
  store_.apply(watch_event("MODIFIED", object("a", "6", "")));
  ASSERT_EQ(store_.find("team", "mnist").size(), 1U);
  EXPECT_EQ(store_.find("team", "mnist")[0].meta.name, "b");
  store_.apply(watch_event("DELETED", object("b", "7")));
  EXPECT_THAT(store_.labelled(), ElementsAre("lab/mnist", "team/other"));
  EXPECT_THAT(store_.keys(), ElementsAre("lab/c", "team/a", "team/d", "team/e"));
}

TEST_F(StoreTest, ObjectsNeedNoNamespace) {
  const std::string node = R"({"metadata":{"name":"x","uid":"u","resourceVersion":"1"}})";
  list({list_page(node, "5")});
  EXPECT_THAT(store_.keys(), ElementsAre("/x"));
  EXPECT_EQ(store_.get("/x")->meta.uid, "u");
  EXPECT_EQ(store_.get("x"), std::nullopt);
  list({list_page("", "6")});
  EXPECT_EQ(store_.size(), 0U);
}

TEST_F(StoreTest, AListShowsAnObjectThatWasMadeAgain) {
  list({list_page(object("a", "1"), "5")});
  list({list_page(object("a", "7", "mnist", "other"), "8")});
  EXPECT_THAT(changes_, ElementsAre("a ->1", "a 1>7"));
  EXPECT_EQ(store_.get("team/a")->meta.uid, "other");
}

TEST_F(StoreTest, FindsByLabelAsItChanges) {
  store_.apply(watch_event("ADDED", object("a", "1", "mnist")));
  store_.apply(watch_event("ADDED", object("b", "2", "mnist")));
  store_.apply(watch_event("ADDED", object("c", "3", "other")));
  EXPECT_EQ(store_.find("team", "mnist").size(), 2U);
  store_.apply(watch_event("MODIFIED", object("b", "4", "other")));
  EXPECT_EQ(store_.find("team", "mnist").size(), 1U);
  EXPECT_EQ(store_.find("team", "other").size(), 2U);
  EXPECT_TRUE(store_.find("elsewhere", "mnist").empty());
}

TEST_F(StoreTest, WhatAWriteAnsweredIsTakenOverSilentlyIfItIsNewer) {
  store_.apply(watch_event("ADDED", object("a", "9")));
  changes_.clear();
  store_.refresh(decode_object<Pod>(object("a", "10")));
  EXPECT_EQ(store_.get("team/a")->meta.resource_version, "10");
  store_.apply(watch_event("MODIFIED", object("a", "10")));  // our own write comes back
  store_.refresh(decode_object<Pod>(object("a", "8")));
  store_.refresh(decode_object<Pod>(object("a", "11", "mnist", "another")));
  store_.refresh(decode_object<Pod>(object("gone", "12")));
  EXPECT_EQ(store_.get("team/a")->meta.resource_version, "10");
  EXPECT_EQ(store_.size(), 1U);
  EXPECT_TRUE(changes_.empty());
}

TEST(ResourceVersions, AreComparedAsNumbersOfAnyLength) {
  EXPECT_TRUE(is_older("9", "10"));
  EXPECT_FALSE(is_older("10", "9"));
  EXPECT_FALSE(is_older("10", "10"));
  EXPECT_TRUE(is_older("99999999999999999999", "100000000000000000000"));
  EXPECT_FALSE(is_older("", "1"));
  EXPECT_FALSE(is_older("a", "b"));
}

}  // namespace
}  // namespace muster::kube
