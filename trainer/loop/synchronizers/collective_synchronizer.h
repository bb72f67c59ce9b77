#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/threads/mutex.h"
#include "trainer/collective/member_flow.h"
#include "trainer/collective/wire_session.h"
#include "trainer/compute/engine_group.h"
#include "trainer/group/identity.h"
#include "trainer/group/membership.h"
#include "trainer/group/rendezvous_client.h"
#include "trainer/loop/batches/replica_gradients.h"
#include "trainer/loop/synchronizers/group_wait.h"
#include "trainer/loop/synchronizers/member_report.h"
#include "trainer/loop/synchronizers/step_times.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// The synchronizer of a collective: all members hold the same parameters, and gradients are summed
// over all of them.
class CollectiveSynchronizer : public Synchronizer {
 public:
  struct Setup : GroupWait::Setup {
    uint64_t incarnation = 0;  // the incarnation in our Hello
    std::filesystem::path storage;
    std::string host;          // our address or name, to which other members can connect
    group::PortRange ports;    // the ports on which we listen for members
    group::Identity identity;  // the identity of all members
    // Rank 0: whether a checkpoint will be due at a position, if training does not end there.
    std::function<bool(const checkpoint::Position&)> saves_at;
    std::function<void()> states_differ;  // rank 0: called when members' states have differed
  };

  // The references must outlive the synchronizer. `client` reports the content of `report`.
  CollectiveSynchronizer(Assembly& assembly, group::RendezvousClient& client, MemberReport& report,
                         Setup setup);
  ~CollectiveSynchronizer() override;

  // Waits for a generation as GroupWait::wait() does, with its errors. step() throws the same
  // errors while it waits for other members.
  bool start(std::stop_token stop) override;
  bool has_next() override {
    return !group_.finished() && !assembly_.workload->finished(position());
  }
  StepResult step() override;
  uint64_t generation() const override {
    return flow_.generation() == 0 ? 0 : std::max(flow_.generation(), publishing_);
  }
  bool compared() const override { return compared_; }
  void evaluated(const checkpoint::Evaluations& evaluations) override;
  void read_weights(std::span<float> to) override;
  std::unique_ptr<Snapshot> snapshot() override;

  // Makes generation() return `generation` if it is newer than the session's generation.
  // Precondition: this process has claimed `generation`, and no steps have been made in it.
  void publish_as(uint64_t generation) { publishing_ = generation; }

  // Returns the metrics of the slowest member; see StepTimes.
  std::map<std::string, double> metrics() const;

 private:
  void report();
  void settle();
  void take(const compute::LossSums& sums, const collective::Note& note);
  void prepare(const CollectivePlan& plan, int place);
  std::string prepare_memory(const CollectivePlan& plan, int place);
  std::string prepare_wire(const CollectivePlan& plan, int place);
  void fill(const CollectivePlan& plan, std::span<float> parameters,
            std::span<const std::span<float>> slots);
  bool enter(const CollectivePlan& plan, int place);
  bool join_memory(const CollectivePlan& plan, int place);
  bool join_wire(const CollectivePlan& plan, int place);
  std::unique_ptr<collective::Session> join_gpus(const CollectivePlan& plan, int place);
  compute::EngineGroup& engine_group(const CollectivePlan& plan);
  void compute();
  bool compare_at_entry(const CollectivePlan& plan, const collective::Session::Watch& watch);
  bool is_comparable() const { return plan_.comparable() && !plan_.shared_memory(); }
  bool foresees_checkpoint();
  void tell_difference(const CollectivePlan& plan, uint64_t step, const std::vector<int>& odd);
  collective::WireSession::State empty_state() const;
  void copy_state(std::span<float> parameters, std::span<const std::span<float>> slots);
  bool is_over() const;
  bool is_current();
  compute::UpdateArguments arguments(uint64_t step, uint64_t t,
                                     const compute::LossSums& sums) const;

  Assembly& assembly_;
  group::RendezvousClient& client_;
  MemberReport& report_;
  const Setup setup_;
  GroupWait group_;
  ReplicaGradients gradients_;
  const compute::Engine::OnComplete on_complete_ = [this](size_t end) { hosted_->complete(end); };
  std::unique_ptr<compute::EngineGroup> engine_group_;  // null until GPUs are linked
  std::unique_ptr<collective::Session> session_;
  // session_ as a HostSession; null if GPUs hold the state.
  collective::HostSession* hosted_ = nullptr;
  // The next three members belong to the generation that we have prepared for: the session, if
  // members share memory and we provide the state; or the TCP group.
  std::unique_ptr<collective::Session> next_;
  std::unique_ptr<collective::WireGroup> wire_;
  collective::WireSession::State wire_state_;
  collective::MemberFlow flow_;  // its generation is that of session_
  uint64_t publishing_ = 0;
  uint64_t revision_ = 0;  // revision of the last view seen
  CollectivePlan plan_;    // plan of session_
  bool compared_ = true;
  std::string fault_;  // why this process will leave at the next generation; "": it stays
  checkpoint::Position position_after_;  // the position after the step under way
  // The sums and the note of a step that we may have left before its end.
  compute::LossSums last_sums_;
  collective::Note last_note_;
  collective::Note note_;  // the evaluations of position()
  StepTimes step_times_;
  std::stop_token stop_;
  std::vector<ReplicaGradients::Target> targets_;  // targets of session_
  std::vector<compute::LossSums> sums_;            // sums of each of our logical replicas
};

}  // namespace muster::loop
