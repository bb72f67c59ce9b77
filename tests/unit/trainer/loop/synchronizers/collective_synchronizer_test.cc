#include "trainer/loop/synchronizers/collective_synchronizer.h"

#include <gmock/gmock.h>

#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "proto/muster/parameter_server.pb.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/collective/shared_state.h"
#include "trainer/group/grpc_server.h"
#include "trainer/group/rendezvous_server.h"

namespace muster::loop {
namespace {

using collective::SharedState;
using std::chrono::milliseconds;

constexpr uint64_t kSource = 10;  // incarnations
constexpr uint64_t kOurs = 11;

// A job's rendezvous, whose generations the test makes up.
class Rendezvous {
 public:
  Rendezvous() : server_(std::in_place, address_, group::identity_of_tests(), expected()) {}

  const std::string& address() const { return address_; }
  void open(const CollectivePlan& plan) {
    server_->update([&](GroupView& view) {
      view.set_phase(GroupView::RUNNING);
      view.set_generation(plan.generation());
      *view.mutable_collective() = plan;
    });
  }
  // What the worker says of itself, once `ready` holds for it.
  MemberState await(const std::function<bool(const MemberState&)>& ready) {
    MemberState state;
    const auto look = [&](const group::PeerRegistry& registry) {
      const auto members = registry.members();
      if (members.contains(1)) state = members.at(1)->member;
    };
    for (;;) {
      server_->inspect(look);
      if (ready(state)) return state;
      server_->wait_for_change(milliseconds(100));
    }
  }
  void go() { server_.reset(); }

 private:
  static group::PeerRegistry::Expected expected() {
    group::PeerRegistry::Expected expected;
    expected.job_uid = "u";
    expected.workers = expected.most_workers = 1;
    expected.shards = 0;
    return expected;
  }

  const std::string address_ = free_address();
  std::optional<group::RendezvousServer> server_;
};

// A worker that takes the state from the memory of rank 0, which is this process too.
class CollectiveSynchronizerTest : public testing::Test {
 protected:
  static Hello hello() {
    Hello hello;
    hello.set_job_uid("u");
    hello.set_role("worker");
    hello.set_incarnation(kOurs);
    return hello;
  }
  static CollectiveSynchronizer::Setup setup() {
    CollectiveSynchronizer::Setup setup;
    setup.incarnation = kOurs;
    return setup;
  }

  std::unique_ptr<SharedState> make_state() const {
    SharedState::Shape shape;
    shape.floats = assembly_.engine->layout().size();
    shape.slots = assembly_.optimizer->slot_names().size();
    shape.members = shape.replicas = 2;
    return SharedState::make(shape, 0, 0);
  }
  static CollectivePlan plan(uint64_t generation, const SharedState::Offer& offer,
                             uint64_t source = kSource) {
    SharedMemoryOffer message;
    message.set_pid(offer.pid);
    message.set_fd(offer.fd);
    message.set_nonce(offer.nonce);
    CollectivePlan plan;
    plan.set_generation(generation);
    plan.set_content(CollectivePlan::INITIALIZE);
    plan.set_replicas(2);
    plan.set_shared_memory(true);
    plan.add_members()->set_incarnation(source);
    plan.mutable_members(0)->set_endpoint(message.SerializeAsString());
    plan.add_members()->set_incarnation(kOurs);
    plan.mutable_members(1)->set_rank(1);
    return plan;
  }
  // A worker that has failed to enter it.
  MemberState refused(const CollectivePlan& plan) {
    rendezvous_.open(plan);
    std::stop_source stop;
    std::thread starting([&] { EXPECT_FALSE(synchronizer_.start(stop.get_token())); });
    const MemberState state = rendezvous_.await(
        [&](const MemberState& said) { return said.failed() == plan.generation(); });
    stop.request_stop();
    starting.join();
    return state;
  }

  Rendezvous rendezvous_;
  Assembly assembly_ = assemble(
      Training::load(write_training(fresh_folder("worker"), "epochs: 2\n")), 2, false, {1, false});
  MemberReport report_;
  group::RendezvousClient client_{
      group::make_channel(rendezvous_.address(), group::identity_of_tests()), "rank 0", hello(),
      [this](PeerMessage& message) { report_.fill(message); }};
  CollectiveSynchronizer synchronizer_{assembly_, client_, report_, setup()};
};

TEST_F(CollectiveSynchronizerTest, GivesUpWaitingForOthersOfARendezvousThatIsGone) {
  const auto state = make_state();
  rendezvous_.open(plan(1, state->offer()));
  CollectiveSynchronizer::Setup impatient = setup();
  impatient.patience = milliseconds(3000);
  CollectiveSynchronizer synchronizer(assembly_, client_, report_, impatient);
  ASSERT_TRUE(synchronizer.start({}));
  rendezvous_.go();
  EXPECT_THROW(synchronizer.step(), Unavailable);
}

// Where it was its process that has gone, or has let it go.
TEST_F(CollectiveSynchronizerTest, OnlyMemoryThatIsRefusedTwiceIsTakenToBeHidden) {
  const auto state = make_state();
  SharedState::Offer gone = state->offer();
  ++gone.nonce;
  EXPECT_EQ(refused(plan(1, gone)).unshared(), 0u);
  EXPECT_EQ(refused(plan(2, gone, kSource + 5)).unshared(), 0u);
  EXPECT_EQ(refused(plan(3, gone, kSource + 5)).unshared(), kSource + 5);
  rendezvous_.open(plan(4, state->offer()));
  ASSERT_TRUE(synchronizer_.start({}));
  EXPECT_EQ(synchronizer_.generation(), 4u);
}

TEST_F(CollectiveSynchronizerTest, APlanThatCannotBeIsAnErrorOfTheProtocol) {
  struct Case {
    std::function<void(CollectivePlan&)> change;
    std::string names;
  };
  const std::vector<Case> cases = {
      {[](CollectivePlan& plan) { plan.set_replicas(1); }, "logical replicas, found 1"},
      {[](CollectivePlan& plan) { plan.set_source(2); }, "found that member 2 does"},
      {[](CollectivePlan& plan) {
         plan.set_source(~0u);
         plan.set_content(CollectivePlan::KEEP);
       },
       "found that member 4294967295 does"}};
  const auto state = make_state();
  uint64_t generation = 0;
  for (const Case& one : cases) {
    CollectivePlan impossible = plan(++generation, state->offer());
    one.change(impossible);
    rendezvous_.open(impossible);
    client_.wait([&](const GroupView& view) { return view.generation() == generation; }, {},
                 milliseconds(60000), milliseconds(60000));
    try {
      synchronizer_.start({});
      ADD_FAILURE() << "entered: " << one.names;
    } catch (const Invalid& error) {
      EXPECT_EQ(error.exit_code(), kProtocol);
      EXPECT_THAT(error.what(), testing::HasSubstr(one.names));
    }
  }
}

}  // namespace
}  // namespace muster::loop
