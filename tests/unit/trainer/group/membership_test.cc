#include "trainer/group/membership.h"

#include <gmock/gmock.h>

#include <fstream>
#include <random>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/common/temporary_folder.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "trainer/group/address.h"
#include "trainer/group/tf_config.h"

namespace muster::group {
namespace {

using testing::HasSubstr;

constexpr char kCluster[] =
    R"({"ps": ["10.0.0.1:2222", "b:2222"], "chief": ["c:2222"], "worker": ["d:1", "e:2"]})";

std::string tf_config(const std::string& cluster, const std::string& task) {
  return R"({"cluster": )" + cluster + R"(, "task": )" + task + "}";
}

TEST(MembershipTest, ReadsRoleIndexAndEverybodyElse) {
  const Membership membership = parse_membership(
      {{"TF_CONFIG", tf_config(kCluster, R"({"type": "worker", "index": 1})")},
       {"MUSTER_JOB", "mnist"},
       {"MUSTER_JOB_UID", "u-1"},
       {"MUSTER_ATTEMPT", "3"},
       {"MUSTER_RESTARTS", "2"},
       {"MUSTER_LAST_EXIT_CODE", "137"},
       {"MUSTER_STORAGE", "/s"},
       {"MUSTER_REPLICAS", R"({"ps": 2, "chief": 1, "worker": 2, "evaluator": 1})"}});
  EXPECT_EQ(membership.role, Role::worker);
  EXPECT_EQ(membership.rank(), 2);
  EXPECT_EQ(membership.members(), 3);
  EXPECT_EQ(membership.shards(), 2);
  EXPECT_EQ(membership.attempt, 3);
  EXPECT_EQ(membership.restarts, 2);
  EXPECT_EQ(membership.last_exit_code, 137);
  EXPECT_FALSE(membership.is_leader());
  EXPECT_TRUE(membership.has_evaluator());
  EXPECT_EQ(membership.rendezvous_address(), "c:2222");
}

TEST(MembershipTest, MasterIsChief) {
  const Membership membership = parse_membership(
      {{"TF_CONFIG", tf_config(R"({"ps": ["a:1"], "master": ["m:1"], "worker": ["w:1"]})",
                               R"({"type": "master", "index": 0})")},
       {"MUSTER_STORAGE", "/s"}});
  EXPECT_EQ(membership.role, Role::chief);
  EXPECT_EQ(membership.role_name, "master");
  EXPECT_TRUE(membership.is_leader());
}

TEST(MembershipTest, WithoutAChiefWorkerZeroLeads) {
  const Membership membership =
      parse_membership({{"TF_CONFIG", tf_config(R"({"ps": ["a:1"], "worker": ["w:1", "x:1"]})",
                                                R"({"type": "worker", "index": 0})")},
                        {"MUSTER_STORAGE", "/s"}});
  EXPECT_TRUE(membership.is_leader());
  EXPECT_EQ(membership.rendezvous_address(), "w:1");
}

TEST(MembershipTest, WithoutTfConfigItIsAJobOfOneReplica) {
  const Membership membership = parse_membership({{"MUSTER_ROLE", "worker"}});
  EXPECT_FALSE(membership.distributed());
  EXPECT_EQ(membership.role_name, "worker");
}

TEST(MembershipTest, TheEvaluatorIsNotInTheCluster) {
  const Membership membership =
      parse_membership({{"TF_CONFIG", tf_config(kCluster, R"({"type": "evaluator", "index": 0})")},
                        {"MUSTER_STORAGE", "/s"}});
  EXPECT_EQ(membership.role, Role::evaluator);
  EXPECT_FALSE(membership.is_member());
}

struct BadCase {
  std::string tf_config;
  std::string names;
};

TEST(MembershipTest, NamesTheFieldThatIsWrong) {
  const std::string worker = R"({"type": "worker", "index": 0})";
  const std::vector<BadCase> cases = {
      {"{", "not JSON"},
      {"[1]", "TF_CONFIG: expected a JSON object"},
      {R"({"task": 1e999})", "TF_CONFIG: expected numbers of at most 1.8e308, found a larger one"},
      {R"({"cluster": {}})", "task"},
      {tf_config("[]", worker), "cluster: expected an object"},
      {tf_config(R"({"worker": "w:1"})", worker), "cluster.worker: expected a list"},
      {tf_config(R"({"worker": [7]})", worker), "cluster.worker[0]"},
      {tf_config(R"({"worker": ["w"]})", worker), "cluster.worker[0]"},
      {tf_config(R"({"worker": ["w:0"]})", worker), "cluster.worker[0]"},
      {tf_config(R"({"worker": ["w:70000"]})", worker), "cluster.worker[0]"},
      {tf_config(R"({"wroker": ["w:1"]})", worker), "wroker"},
      {tf_config(R"({"chief": ["c:1"], "master": ["m:1"]})", worker), "both"},
      {tf_config(R"({"chief": ["c:1", "d:1"]})", worker), "cluster.chief"},
      {tf_config(kCluster, "3"), "task: expected an object"},
      {tf_config(kCluster, R"({"index": 0})"), "task.type"},
      {tf_config(kCluster, R"({"type": "boss", "index": 0})"), "task.type"},
      {tf_config(kCluster, R"({"type": "worker"})"), "task.index"},
      {tf_config(kCluster, R"({"type": "worker", "index": -1})"), "task.index"},
      {tf_config(kCluster, R"({"type": "worker", "index": "0"})"), "task.index"},
      {tf_config(kCluster, R"({"type": "worker", "index": 2})"), "task.index"},
      {tf_config(kCluster, R"({"type": "master", "index": 0})"), "task.index"},
      {tf_config(R"({"worker": ["w:1", "x:1"]})", worker), "MUSTER_STORAGE"},
      {tf_config(kCluster, worker), "MUSTER_STORAGE"},
  };
  for (const BadCase& bad : cases) {
    try {
      parse_membership({{"TF_CONFIG", bad.tf_config}});
      ADD_FAILURE() << "accepted: " << bad.tf_config;
    } catch (const Invalid& error) {
      EXPECT_EQ(error.exit_code(), kBadConfig);
      EXPECT_THAT(error.what(), HasSubstr(bad.names)) << bad.tf_config;
    }
  }
}

TEST(MembershipTest, NamesTheVariableThatIsWrong) {
  const std::string good = tf_config(kCluster, R"({"type": "worker", "index": 0})");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"MUSTER_ATTEMPT", "x"},    {"MUSTER_ATTEMPT", "-1"}, {"MUSTER_ROLE", "chief"},
      {"MUSTER_INDEX", "1"},      {"MUSTER_REPLICAS", "5"}, {"MUSTER_REPLICAS", R"({"ps": "x"})"},
      {"MUSTER_POD_IP", "10.0.0"}};
  for (const auto& [name, value] : cases) {
    try {
      parse_membership({{"TF_CONFIG", good}, {"MUSTER_STORAGE", "/s"}, {name, value}});
      ADD_FAILURE() << "accepted: " << name << "=" << value;
    } catch (const Invalid& error) {
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  }
}

TEST(MembershipTest, NoTextCrashesIt) {
  const std::string good = tf_config(kCluster, R"({"type": "worker", "index": 0})");
  std::mt19937 random(2);
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (int j = 0; j < 4; ++j) text[random() % text.size()] = static_cast<char>(random());
    Membership membership;
    try {
      parse_tf_config(text, membership);
    } catch (const Invalid&) {
    }
  }
  Membership membership;
  EXPECT_THROW(parse_tf_config(std::string(100000, '['), membership), Invalid);
}

TEST(MembershipTest, IsReachableByItsIpWhereItIsToldThat) {
  Environment environment = {{"TF_CONFIG", tf_config(R"({"ps": ["p:2222"], "chief": ["c:2222"]})",
                                                     R"({"type": "ps", "index": 0})")},
                             {"MUSTER_STORAGE", "/s"}};
  EXPECT_EQ(parse_membership(environment).reachable_address(), "p:2222");
  environment["MUSTER_POD_IP"] = "10.0.0.7";
  EXPECT_EQ(parse_membership(environment).reachable_address(), "10.0.0.7:2222");
  environment["MUSTER_POD_IP"] = "fd00::7";
  EXPECT_EQ(parse_membership(environment).reachable_address(), "[fd00::7]:2222");
  EXPECT_EQ(parse_membership(environment).own_address(), "p:2222");
}

TEST(MembershipTest, ReadsATfConfigThatIsTooLongForAVariableFromAFile) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "tf_config.json";
  std::string workers;
  for (int i = 0; i < 1000; ++i)
    workers += (i == 0 ? "\"" : ",\"") + std::string(140, 'w') + std::to_string(i) + ":2222\"";
  const std::string text = tf_config(R"({"chief": ["c:2222"], "worker": [)" + workers + "]}",
                                     R"({"type": "worker", "index": 999})");
  ASSERT_GT(text.size(), 128u * 1024);
  std::ofstream(file) << text;
  const Membership membership =
      parse_membership({{"MUSTER_TF_CONFIG", file}, {"MUSTER_STORAGE", "/s"}});
  EXPECT_EQ(membership.members(), 1001);
  EXPECT_EQ(membership.own_address(), std::string(140, 'w') + "999:2222");
  try {
    parse_membership({{"MUSTER_TF_CONFIG", folder.path() / "none"}, {"MUSTER_STORAGE", "/s"}});
    ADD_FAILURE() << "read what is not there";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("MUSTER_TF_CONFIG: "));
    EXPECT_EQ(error.exit_code(), kBadConfig);
  }
}

TEST(MembershipTest, HasTheIdentityOfTheFolderThatItIsTold) {
  EXPECT_FALSE(parse_membership({}).identity);
  const test::TemporaryFolder folder;
  write_key_pair(folder.path(), make_key_pair());
  EXPECT_TRUE(parse_membership({{"MUSTER_TLS", folder.path()}}).identity);
}

TEST(MembershipTest, ListensForMembersAtThePortsThatItIsTold) {
  Environment environment;
  EXPECT_EQ(parse_membership(environment).peer_ports, PortRange{});
  environment["MUSTER_PEER_PORTS"] = "2223-2254";
  EXPECT_EQ(parse_membership(environment).peer_ports, (PortRange{2223, 2254}));
  for (const char* text : {"2223", "-2254", "2223-", "2254-2223", "0-5", "1-65536", "a-b"}) {
    environment["MUSTER_PEER_PORTS"] = text;
    EXPECT_THROW(parse_membership(environment), Invalid) << text;
  }
}

TEST(AddressTest, ListensEverywhereForANameAndThereForAnAddress) {
  EXPECT_EQ(listening_address("mnist-ps-0.mnist.default.svc:2222"), "[::]:2222");
  EXPECT_EQ(listening_address("127.0.0.1:2222"), "127.0.0.1:2222");
  EXPECT_EQ(listening_address("localhost:2222"), "localhost:2222");
  EXPECT_TRUE(is_address("[::1]:80"));
  EXPECT_FALSE(is_address("[x]:80"));
  EXPECT_FALSE(is_address(":80"));
  EXPECT_FALSE(is_address("a b:80"));
}

}  // namespace
}  // namespace muster::group
