#include "tests/unit/operator/plan/simulator.h"

#include <algorithm>

#include "operator/plan/plan.h"

namespace muster::plan {
namespace {

constexpr int kChaosSteps = 60;
constexpr int kCalmSteps = 1500;

int roll_policy(Dice& dice, api::TrainingJob& job) {
  using api::FailureAction;
  job.failure_rules = {{{7}, {}, {}, FailureAction::ignore},
                       {{8}, {}, {}, FailureAction::restart_job}};
  if (dice.percent(30)) job.run_policy.active_deadline_seconds = 1 + dice.below(2000);
  if (dice.percent(30)) job.run_policy.ttl_seconds_after_finished = dice.below(100);
  job.run_policy.evaluator_timeout_seconds = dice.below(100);
  job.run_policy.clean_pod_policy = static_cast<api::CleanPodPolicy>(dice.below(3));
  if (dice.percent(30)) job.startup_order = api::StartupOrder::in_order;
  return dice.percent(50) ? 100 : dice.below(7);
}

api::TrainingJob roll_job(Dice& dice) {
  api::TrainingJob job;
  job.name = "simulated";
  job.uid = "uid";
  const bool elastic = dice.percent(30);
  if (elastic || dice.percent(50)) job.training = Json{{"epochs", 1}};
  const bool chief = dice.percent(60);
  if (!elastic && dice.percent(70)) job.replicas[Role::ps].replicas = 1 + dice.below(2);
  if (chief) job.replicas[Role::chief].replicas = 1;
  if (elastic || !chief || dice.percent(70)) {
    job.replicas[Role::worker].replicas = 1 + dice.below(3);
  }
  if (elastic) job.elastic = api::Elastic{1, 4};
  if (dice.percent(60)) job.replicas[Role::evaluator].replicas = 1;
  job.decided_by = chief              ? api::DecidedBy::chief
                   : dice.percent(50) ? api::DecidedBy::all_workers
                                      : api::DecidedBy::worker_zero;
  job.run_policy.backoff_limit = roll_policy(dice, job);
  for (auto& [role, spec] : job.replicas) {
    if (dice.percent(5)) spec.restart_policy = api::RestartPolicy::never;
  }
  job.suspend = dice.percent(10);
  job.enable_dynamic_worker = job.training.is_null() && dice.percent(30);
  return job;
}

std::string text(const ObservedReplica& replica) {
  return std::string(api::name_of(replica.role)) + "-" + std::to_string(replica.index) + "." +
         std::to_string(replica.attempt) + " (uid " + replica.uid + ")";
}

std::string text(const Observed& view) {
  const char* phases[] = {"pending", "running", "succeeded", "failed"};
  std::string list = "nothing";
  for (const ObservedReplica& replica : view.replicas) {
    list = list == "nothing" ? "" : list + ", ";
    list += text(replica) + " " + phases[static_cast<int>(replica.phase)];
    if (replica.deleting) list += " deleting";
  }
  return list;
}

}  // namespace

Outcome& Outcome::operator+=(const Outcome& other) {
  succeeded += other.succeeded;
  failed += other.failed;
  restarts += other.restarts;
  job_restarts += other.job_restarts;
  resumed += other.resumed;
  writes_lost += other.writes_lost;
  late_actions += other.late_actions;
  in_place += other.in_place;
  cut_off += other.cut_off;
  returned += other.returned;
  lengthened += other.lengthened;
  return *this;
}

Simulator::Simulator(uint64_t seed, Faults faults, bool traced)
    : dice_(seed), faults_(faults), traced_(traced), world_(roll_job(dice_)), invariants_(faults) {}

Outcome Simulator::run() {
  try {
    for (int step = 0; step < kChaosSteps; ++step) {
      chaos_step();
      invariants_.check_world(world_);
    }
    calm_down();
  } catch (const std::exception& error) {
    throw Violation(error.what() + trace_);
  }
  const api::JobStatus& status = world_.job.status;
  outcome_.succeeded = status.is_true("Succeeded");
  outcome_.failed = status.is_true("Failed");
  outcome_.restarts = status.restarts;
  outcome_.job_restarts = status.restart_run > 0;
  outcome_.resumed = status.find("Suspended") && status.find("Suspended")->reason == "Resumed";
  return outcome_;
}

void Simulator::chaos_step() {
  if (api::workers_may_change(world_.job) && dice_.percent(10)) return scale_step();
  if (may_be_lengthened() && dice_.percent(5)) return lengthen();
  const int what = dice_.below(100);
  if (what < 38) {
    controller_round(true);
  } else if (what < 80) {
    replica_step();
  } else if (what < 88) {
    time_step();
  } else if (what < 92) {
    user_step();
  } else if (what < 96) {
    world_.collect();
  } else {
    act_late();
  }
}

void Simulator::replica_step() {
  if (world_.replicas().empty()) return;
  const ObservedReplica replica = dice_.pick(world_.replicas());
  auto end = [&](int code, const char* reason = "") {
    tell(text(replica) + " ends with " + std::to_string(code) + " " + reason);
    world_.end(replica.uid, code, reason);
  };
  const int luck = dice_.below(100);
  if (world_.is_cut_off(replica.uid)) {
    if (luck >= 30) return;
    tell(text(replica) + " is heard of again");
    return world_.heal(replica.uid);
  }
  if (!lives(replica)) {
    if (luck < 10) world_.ask_to_leave(replica.uid);  // somebody tidies up
    return;
  }
  // A view from when one was given up, mixed with one from before it vanished, would tell of an end
  // that a successor of the same name then seems to have had.
  const bool may_vanish = faults_ == Faults::reordered && !world_.was_cut_off(replica.uid);
  if (may_vanish && luck < 2) {
    tell(text(replica) + " vanishes");
    return world_.vanish(replica.uid);
  }
  // Clusters give up no replica of an image of the user's whose end was not seen.
  if (luck >= 97 && !world_.job.training.is_null()) {
    tell(text(replica) + " is given up with its node, and lives on");
    ++outcome_.cut_off;
    return world_.cut_off(replica.uid);
  }
  if (replica.deleting) {
    const int codes[] = {143, 143, 143, 143, 0, 1, 137};
    return end(dice_.pick(codes));
  }
  if (luck < 45 && !(replica.phase == Phase::running && replica.ready)) {
    tell(text(replica) + (replica.phase == Phase::pending ? " starts" : " is ready"));
    return world_.start(replica.uid);
  }
  if (luck < 60) {
    const int codes[] = {1, 1, 1, 1, 137, 7, 7, 8, 143, 139};
    return end(dice_.pick(codes));
  }
  if (luck < 65) return end(137, dice_.percent(50) ? "Evicted" : "NodeLost");
  if (luck < 67) return end(65);
  if (luck < 75 && replica.role != Role::ps) return end(0);
  if (luck < 78) {
    tell(text(replica) + " crash-loops");
    return world_.crash_loop(replica.uid);
  }
  if (luck < 84 && replica.phase == Phase::running) {
    const int codes[] = {1, 1, 137, 7, 8};
    const int code = dice_.pick(codes);
    tell(text(replica) + " is restarted in place after " + std::to_string(code));
    ++outcome_.in_place;
    return world_.restart_in_place(replica.uid, code);
  }
  if (luck < 88) {
    tell(text(replica) + " is deleted by somebody");
    return world_.ask_to_leave(replica.uid);
  }
}

void Simulator::user_step() {
  const int what = dice_.below(10);
  if (what < 3) {
    world_.job.suspend = !world_.job.suspend;
    tell(world_.job.suspend ? "suspend" : "resume");
  } else if (what < 5) {
    world_.job.hold = world_.job.hold ? std::nullopt : std::optional(api::Hold{"Queued", "wait"});
    tell(world_.job.hold ? "a queue holds the job" : "the queue admits the job");
  } else if (what < 8 && world_.job.replicas.contains(Role::worker)) {
    return scale_step();
  } else if (what < 9) {
    conflict_ = !conflict_;
  } else {
    invalid_ = !invalid_;
  }
  ++world_.job.generation;
}

bool Simulator::may_be_lengthened() const {
  return world_.job.status.is_true("Succeeded") && !world_.job.training.is_null() &&
         outcome_.lengthened < 2;
}

void Simulator::lengthen() {
  tell("give the job that has succeeded more epochs");
  world_.job.training["epochs"] = world_.job.training["epochs"].get<int>() + 1;
  ++world_.job.generation;
  ++outcome_.lengthened;
  evaluated_ = false;
}

void Simulator::scale_step() {
  int& workers = world_.job.replicas[Role::worker].replicas;
  workers = 1 + dice_.below(4);
  tell("scale to " + std::to_string(workers));
  ++world_.job.generation;
}

void Simulator::time_step() {
  const int what = dice_.below(10);
  if (what < 5) {
    world_.now += std::chrono::milliseconds(dice_.below(3000));
  } else if (what < 8 && look_again_ && *look_again_ > world_.now) {
    world_.now = *look_again_;
  } else if (what < 9) {
    world_.now += std::chrono::seconds(dice_.below(1500));
  } else {
    world_.now -= std::chrono::seconds(dice_.below(5));
  }
  if (world_.job.status.is_true("SuccessCriteriaMet") && dice_.percent(20)) evaluated_ = true;
}

Observed Simulator::look(bool faulty) {
  Observed view;
  if (faulty && faults_ == Faults::reordered && dice_.percent(60)) {
    view = world_.mixed_view(world_.oldest_moment(), dice_);
  } else {
    const int oldest = std::max(last_moment_, world_.last_creation());
    const int newest = world_.newest_moment();
    last_moment_ = faulty ? oldest + dice_.below(newest - oldest + 1) : newest;
    view = world_.view_of(last_moment_);
  }
  if (conflict_) view.name_conflict = "Service simulated";
  if (invalid_) view.invalid_template = "no such field";
  view.final_checkpoint_evaluated = evaluated_;
  return view;
}

void Simulator::controller_round(bool faulty) {
  const api::TrainingJob job = world_.job;
  const Observed view = look(faulty);
  if (traced_) tell("look: " + text(view));
  const Plan plan = muster::plan::plan(job, view, world_.now);
  invariants_.check_plan(job, view, world_.now, plan);
  look_again_ = plan.look_again;
  if (plan.status != job.status) {
    if (faulty && dice_.percent(12)) return void(++outcome_.writes_lost);
    world_.job.status = plan.status;
    tell("write the status: restarts " + std::to_string(plan.status.restarts) + ", run " +
         std::to_string(plan.status.run));
    invariants_.check_written(job, view, plan.status);
    if (faulty && dice_.percent(8)) return;  // killed between the write and the actions
  }
  std::vector<Action> actions;
  for (const RemoveReplica& removal : plan.remove) actions.push_back({false, {}, removal});
  for (const CreateReplica& creation : plan.create) actions.push_back({true, creation, {}});
  const bool paused = faulty && faults_ == Faults::paused_leader && dice_.percent(20);
  for (const Action& action : actions) {
    if (paused) {
      late_.push_back(action);
    } else if (!faulty || !dice_.percent(10)) {
      act(action);
    }
  }
}

void Simulator::act(const Action& action) {
  if (action.is_creation) {
    const CreateReplica& c = action.creation;
    tell("create " + std::string(api::name_of(c.role)) + "-" + std::to_string(c.index) + "." +
         std::to_string(c.attempt) + " of run " + std::to_string(c.run));
    invariants_.check_creation(world_, c);
    if (c.role == Role::worker && scaled_away_.erase(c.index) > 0) ++outcome_.returned;
    world_.create(c);
  } else {
    tell("remove uid " + action.removal.uid);
    invariants_.check_removal(world_, action.removal);
    const bool is_wanted = action.removal.index < world_.job.replicas[action.removal.role].replicas;
    if (world_.job.elastic && !is_wanted) scaled_away_.insert(action.removal.index);
    world_.remove(action.removal);
  }
  invariants_.check_world(world_);
}

void Simulator::act_late() {
  if (late_.empty()) return;
  tell("a leader that was paused goes on");
  outcome_.late_actions += static_cast<int>(late_.size());
  for (const Action& action : std::exchange(late_, {})) act(action);
}

// One thing each replica would do by itself. False if there was nothing to do.
bool Simulator::calm_step() {
  bool busy = false;
  const bool ending = world_.job.status.is_true("SuccessCriteriaMet");
  for (const ObservedReplica& replica : std::vector(world_.replicas())) {
    if (!lives(replica)) continue;
    if (replica.deleting) {
      world_.end(replica.uid, 143);
    } else if (replica.reason == "CrashLoopBackOff") {
      continue;
    } else if (replica.phase == Phase::pending || !replica.ready) {
      world_.start(replica.uid);
    } else if (replica.role == Role::ps || (replica.role == Role::evaluator && !ending)) {
      continue;
    } else {
      world_.end(replica.uid, 0);
    }
    busy = true;
  }
  world_.collect();
  return busy;
}

void Simulator::calm_down() {
  tell("the faults stop");
  act_late();
  for (const ObservedReplica& replica : std::vector(world_.replicas())) {
    if (world_.is_cut_off(replica.uid)) world_.heal(replica.uid);
  }
  world_.job.suspend = conflict_ = invalid_ = false;
  world_.job.hold.reset();
  for (int step = 0; step < kCalmSteps; ++step) {
    const api::JobStatus before = world_.job.status;
    controller_round(false);
    invariants_.check_world(world_);
    const bool busy = calm_step() || world_.job.status != before;
    if (busy) continue;
    if (world_.job.status.is_true("Finished")) {
      for (const ObservedReplica& replica : world_.replicas()) {
        if (lives(replica)) throw Violation(text(replica) + " still lives");
      }
      if (!may_be_lengthened() || !dice_.percent(30)) return;
      lengthen();
      continue;
    }
    if (!look_again_) throw Violation("the job is stuck: nothing to do and no time to look again");
    world_.now = *look_again_;
  }
  throw Violation("the job does not finish");
}

void Simulator::tell(const std::string& what) {
  if (!traced_) return;
  const auto time = world_.now.time_since_epoch() - std::chrono::hours(24 * 365 * 50);
  trace_ += "\n  " + std::to_string(time.count() / 1000.0) + " s: " + what;
}

}  // namespace muster::plan
