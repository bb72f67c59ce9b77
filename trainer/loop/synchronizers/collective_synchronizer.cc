#include "trainer/loop/synchronizers/collective_synchronizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <stdexcept>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/program/stopwatch.h"
#include "common/program/time_ledger.h"
#include "common/threads/doorbell.h"
#include "common/threads/watched_work.h"
#include "proto/muster/parameter_server.pb.h"
#include "trainer/checkpoint/start/begin_state.h"
#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/collective/device_session.h"
#include "trainer/collective/plan.h"
#include "trainer/collective/shared_session.h"
#include "trainer/collective/state_digest.h"
#include "trainer/group/position.h"
#include "trainer/loop/synchronizers/state_snapshot.h"

namespace muster::loop {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr milliseconds kConnect{30000};  // time to connect, or until the state's next bytes

collective::SharedState::Shape shape_of(const CollectivePlan& plan, const Assembly& assembly) {
  collective::GroupShape shape;
  shape.members = plan.members_size();
  shape.replicas = static_cast<int>(plan.replicas());
  shape.rounded = assembly.spec().rounded();
  return collective::shape_of(shape, *assembly.optimizer);
}

collective::SharedState::Offer read_offer(const std::string& endpoint) {
  SharedMemoryOffer offer;
  if (!offer.ParseFromString(endpoint)) throw Invalid("it is no offer of memory");
  return {offer.pid(), offer.fd(), offer.nonce()};
}

std::string to_text(const collective::SharedState::Offer& offer) {
  SharedMemoryOffer message;
  message.set_pid(offer.pid);
  message.set_fd(offer.fd);
  message.set_nonce(offer.nonce);
  return message.SerializeAsString();
}

// Returns the endpoint with the id by which GPUs are linked.
std::string with_link_id(const std::string& endpoint, const std::string& id) {
  WireEndpoint message;
  message.ParseFromString(endpoint);
  message.set_link_id(id);
  return message.SerializeAsString();
}

std::string link_id_of(const CollectivePlan& plan) {
  WireEndpoint message;
  message.ParseFromString(plan.members(static_cast<int>(plan.source())).endpoint());
  return message.link_id();
}

std::vector<int> ranks_of(const CollectivePlan& plan) {
  std::vector<int> ranks;
  for (const MemberPlace& member : plan.members()) ranks.push_back(static_cast<int>(member.rank()));
  return ranks;
}

collective::Note note_of(const checkpoint::Evaluations& evaluations) {
  return collective::Note::from(group::to_message(evaluations).SerializeAsString());
}

}  // namespace

CollectiveSynchronizer::CollectiveSynchronizer(Assembly& assembly, group::RendezvousClient& client,
                                               MemberReport& report, Setup setup)
    : assembly_(assembly),
      client_(client),
      report_(report),
      setup_(std::move(setup)),
      group_(client, setup_),
      gradients_(assembly.devices(), /*exclusive=*/false, assembly.spec().rounded()),
      flow_(setup_.incarnation) {}

// The engines must release the session's memory before it is freed, and the session must release
// the engines' memory.
CollectiveSynchronizer::~CollectiveSynchronizer() {
  gradients_.release();
  next_.reset();
  if (session_ && !hosted_) session_->settle();
  session_.reset();
}

bool CollectiveSynchronizer::is_over() const {
  return group_.is_over(
      [this](const GroupView& view) { return !collective::runs(view, flow_.generation()); });
}

// Checks only views that have come since the last call.
bool CollectiveSynchronizer::is_current() {
  const uint64_t revision = client_.revision();
  return std::exchange(revision_, revision) == revision || !is_over();
}

bool CollectiveSynchronizer::start(std::stop_token stop) {
  stop_ = stop;
  settle();
  using Next = collective::MemberFlow::Next;
  const auto asks = [this](const GroupView& view) { return flow_.next(view) != Next::wait; };
  while (const auto view = group_.wait(asks, stop)) {
    const CollectivePlan& plan = view->collective();
    collective::require_possible(plan);
    // Like a GPU's error: exit code 71.
    if (!fault_.empty()) throw DeviceError(fault_, /*lost=*/true);
    const int place = flow_.place_in(plan);
    if (flow_.next(*view) == Next::prepare) prepare(plan, place);
    if (flow_.next(*view) == Next::enter && enter(plan, place)) return true;
  }
  return group_.finished();
}

void CollectiveSynchronizer::report() {
  report_.set(flow_.report());
  client_.report_now();
}

// Ends our part in the current generation and reports the position of our state.
void CollectiveSynchronizer::settle() {
  if (!flow_.is_inside()) return;
  const collective::Session::Settled settled = session_->settle();
  if (flow_.made_step_after(position().step, settled.step)) {
    const bool known = settled.sums.rows > 0;  // otherwise we already had the sums
    take(known ? settled.sums : last_sums_, known ? settled.note : last_note_);
  }
  flow_.settled(group::to_message(position()));
  report();
}

// Moves the position past a finished step. From here on we know rank 0's evaluation before this
// step.
void CollectiveSynchronizer::take(const compute::LossSums& sums, const collective::Note& note) {
  mutable_position().sums.add(position().epoch, sums);
  if (note.size > 0 && note != note_) {
    EvaluationsMessage evaluations;
    if (evaluations.ParseFromString(note.text()))
      mutable_position().evaluations = group::from_message(evaluations);
    note_ = note;
  }
  assembly_.workload->advance(mutable_position());
}

compute::UpdateArguments CollectiveSynchronizer::arguments(uint64_t step, uint64_t t,
                                                           const compute::LossSums& sums) const {
  compute::UpdateArguments arguments;
  arguments.learning_rate = static_cast<float>(assembly_.spec().schedule.at(step));
  arguments.t = t;
  arguments.divide_by(sums);
  return arguments;
}

void CollectiveSynchronizer::fill(const CollectivePlan& plan, std::span<float> parameters,
                                  std::span<const std::span<float>> slots) {
  if (plan.content() != CollectivePlan::INITIALIZE && plan.content() != CollectivePlan::RESTORE)
    return copy_state(parameters, slots);
  std::optional<checkpoint::Store::Found> from;
  if (plan.content() == CollectivePlan::RESTORE)
    from = checkpoint::Store::read_of_another_host(setup_.storage / plan.checkpoint());
  checkpoint::begin_state(from ? &*from : nullptr, assembly_.spec(), *assembly_.optimizer,
                          {0, assembly_.engine->layout().size()}, parameters, slots);
}

void CollectiveSynchronizer::copy_state(std::span<float> parameters,
                                        std::span<const std::span<float>> slots) {
  session_->copy(parameters, slots, [this](const compute::LossSums& sums) {
    return arguments(position().step - 1, position().optimizer_t, sums);
  });
}

void CollectiveSynchronizer::prepare(const CollectivePlan& plan, int place) {
  next_.reset();
  wire_.reset();
  if (flow_.is_outdated(plan, position().step)) {
    log::info("generation " + std::to_string(plan.generation()) + " is to begin with step " +
              std::to_string(plan.position().step()) + ": we have step " +
              std::to_string(position().step));
    flow_.failed(plan.generation());
  } else {
    flow_.prepared(plan.generation(),
                   plan.shared_memory() ? prepare_memory(plan, place) : prepare_wire(plan, place));
  }
  report();
}

// The member that provides the state creates the memory.
std::string CollectiveSynchronizer::prepare_memory(const CollectivePlan& plan, int place) {
  if (place != static_cast<int>(plan.source())) return "";
  const int threads = plan.members_size() * assembly_.threads();
  auto state = collective::SharedState::make(shape_of(plan, assembly_), plan.position().step(),
                                             worthwhile_spins(threads));
  std::vector<std::span<float>> slots;
  for (size_t i = 0; i < state->shape().slots; ++i) slots.push_back(state->slot(i));
  fill(plan, state->parameters(), slots);
  const std::string endpoint = to_text(state->offer());
  next_ =
      std::make_unique<collective::SharedSession>(std::move(state), place, *assembly_.optimizer);
  return endpoint;
}

collective::WireSession::State CollectiveSynchronizer::empty_state() const {
  return collective::WireSession::State(1 + assembly_.optimizer->slot_names().size(),
                                        compute::Floats(assembly_.engine->layout().size()));
}

std::string CollectiveSynchronizer::prepare_wire(const CollectivePlan& plan, int place) {
  const size_t floats = plan.linked_gpus() ? 0 : assembly_.engine->layout().size();
  wire_ = std::make_unique<collective::WireGroup>(shape_of(plan, assembly_), place, floats,
                                                  setup_.host, setup_.identity, setup_.ports);
  wire_state_ = empty_state();
  const std::vector<std::span<float>> slots(wire_state_.begin() + 1, wire_state_.end());
  if (collective::holds_state(plan, place)) fill(plan, wire_state_[0], slots);
  if (!plan.linked_gpus() || place != static_cast<int>(plan.source())) return wire_->endpoint();
  try {
    return with_link_id(wire_->endpoint(), engine_group(plan).make_link_id());
  } catch (const Unavailable& error) {
    log::warning(error.what());
    return wire_->endpoint();  // without an id no member can link its GPUs
  }
}

compute::EngineGroup& CollectiveSynchronizer::engine_group(const CollectivePlan& plan) {
  const int gpus = plan.members_size() * gradients_.devices();
  if (static_cast<int>(plan.replicas()) != gpus)
    throw Invalid("the rendezvous: expected a plan of " + std::to_string(gpus) +
                      " logical replicas for as many linked GPUs, found one of " +
                      std::to_string(plan.replicas()),
                  kProtocol);
  if (engine_group_) return *engine_group_;
  engine_group_ = compute::EngineGroup::create(assembly_.engines(), *assembly_.optimizer);
  if (!engine_group_)
    throw Invalid("the rendezvous: expected a plan for this process's CPU, found one for GPUs",
                  kProtocol);
  return *engine_group_;
}

bool CollectiveSynchronizer::join_memory(const CollectivePlan& plan, int place) {
  if (next_) return true;
  const auto shape = shape_of(plan, assembly_);
  const MemberPlace& source = plan.members(static_cast<int>(plan.source()));
  std::unique_ptr<collective::SharedState> state;
  try {
    state = collective::SharedState::open(shape, read_offer(source.endpoint()));
  } catch (const Invalid& error) {
    log::info("the memory of rank " + std::to_string(source.rank()) +
              " cannot be used: " + error.what());
    flow_.memory_refused(client_.view(), plan);
    return false;
  }
  next_ =
      std::make_unique<collective::SharedSession>(std::move(state), place, *assembly_.optimizer);
  return true;
}

bool CollectiveSynchronizer::join_wire(const CollectivePlan& plan, int place) {
  // The time limit begins anew whenever bytes have arrived, because a state may be large.
  auto until = Clock::now() + kConnect;
  uint64_t moved = 0;
  const auto over = [&] {
    const uint64_t now = wire_->moved();
    if (std::exchange(moved, now) != now) until = Clock::now() + kConnect;
    return !collective::runs(client_.require_view(setup_.patience), plan.generation()) ||
           Clock::now() > until;
  };
  const collective::Session::Watch watch{stop_, over};
  std::vector<std::string> endpoints;
  std::vector<bool> targets;
  for (int member = 0; member < plan.members_size(); ++member) {
    endpoints.push_back(plan.members(member).endpoint());
    targets.push_back(!collective::holds_state(plan, member));
  }
  const std::vector<std::span<float>> buffers(wire_state_.begin(), wire_state_.end());
  try {
    wire_->connect(endpoints, watch);
    wire_->broadcast(static_cast<int>(plan.source()), targets, buffers, watch);
    // A member that has the state waits for members that are still receiving it.
    const collective::Session::Watch patient{
        stop_, [&] {
          return !collective::runs(client_.require_view(setup_.patience), plan.generation());
        }};
    if (plan.comparable() && !compare_at_entry(plan, patient)) return false;
    if (plan.linked_gpus())
      next_ = join_gpus(plan, place);
    else
      next_ = std::make_unique<collective::WireSession>(
          std::move(wire_), shape_of(plan, assembly_), place, std::move(wire_state_),
          plan.position().step(), *assembly_.optimizer);
  } catch (const Unavailable& error) {
    log::info("generation " + std::to_string(plan.generation()) +
              " could not be entered: " + error.what());
    return false;
  }
  return true;
}

std::unique_ptr<collective::Session> CollectiveSynchronizer::join_gpus(const CollectivePlan& plan,
                                                                       int place) {
  const auto each = [this](const std::function<void(int)>& work) { gradients_.each(work); };
  const collective::Session::Watch watch{
      stop_,
      [&] { return !collective::runs(client_.require_view(setup_.patience), plan.generation()); }};
  std::unique_ptr<collective::Session> joined;
  try {
    joined = std::make_unique<collective::DeviceSession>(
        std::move(wire_), engine_group(plan), shape_of(plan, assembly_), place,
        plan.position().step(), link_id_of(plan), each, watch);
  } catch (const Unavailable&) {
    flow_.link_failed(client_.view(), plan);
    throw;
  }
  flow_.linked();
  try {
    engine_group_->parameters().write({0, wire_state_[0].size()}, wire_state_[0]).wait();
    for (size_t i = 0; i < engine_group_->slots().size(); ++i) {
      const compute::Floats& slot = wire_state_[1 + i];
      engine_group_->slots()[i]->write({0, slot.size()}, slot).wait();
    }
  } catch (const Unavailable& error) {
    // Neither the old state nor the new one exists any more.
    throw DeviceError(error.what(), /*lost=*/false);
  }
  wire_state_.clear();
  return joined;
}

// Compares the states on entry, because surviving members keep their own states.
bool CollectiveSynchronizer::compare_at_entry(const CollectivePlan& plan,
                                              const collective::Session::Watch& watch) {
  const auto digests = wire_->exchange(collective::digest_of(wire_state_), watch);
  const std::vector<int> odd = collective::odd_members(digests);
  if (odd.empty()) return true;
  tell_difference(plan, plan.position().step(), odd);
  return false;
}

// Reports members whose state differs from that of most. The group goes back to a checkpoint,
// because steps since then used gradients of the wrong state. If this keeps happening to our state,
// this process leaves after the group knows it; otherwise the group would go back for ever.
void CollectiveSynchronizer::tell_difference(const CollectivePlan& plan, uint64_t step,
                                             const std::vector<int>& odd) {
  const std::vector<int> ranks = ranks_of(plan);
  std::vector<int> named;
  for (const int member : odd) named.push_back(ranks[static_cast<size_t>(member)]);
  const std::string names = fmt::format("{}", fmt::join(named, ", "));
  const std::string text =
      odd.size() == ranks.size()
          ? "the states of ranks " + names + " differ, and none is held by more than half of them"
      : odd.size() == 1 ? "rank " + names + " does not hold the state that most members hold"
                        : "ranks " + names + " do not hold the state that most members hold";
  log::warning("step " + std::to_string(step) + ": " + text +
               ". A machine's memory or processor may be faulty; training goes back to a "
               "checkpoint");
  if (setup_.states_differ) setup_.states_differ();
  flow_.compared(plan, odd);
  if (flow_.odd_in_a_row() >= collective::MemberFlow::kMostOdd)
    fault_ = fmt::format("step {}: {}; it is comparison {} in a row in which this process is named",
                         step, text, flow_.odd_in_a_row());
}

// Returns false if we cannot be part of the generation; the group is told.
bool CollectiveSynchronizer::enter(const CollectivePlan& plan, int place) {
  if (plan.shared_memory() ? !join_memory(plan, place) : !join_wire(plan, place)) {
    flow_.failed(plan.generation());
    report();
    return false;
  }
  std::vector<std::span<float>> memory;
  hosted_ = next_->hosted();
  if (hosted_) {
    memory.push_back(hosted_->parameters());
    for (size_t i = 0; i < hosted_->nodes().size(); ++i) memory.push_back(hosted_->gradients(i));
    gradients_.load(hosted_->parameters());
  }
  gradients_.pin(memory);
  session_ = std::move(next_);
  mutable_position() = group::from_message(plan.position());
  assembly_.workload->resize(static_cast<int>(plan.replicas()));
  note_ = note_of(position().evaluations);
  plan_ = plan;
  step_times_ = StepTimes(ranks_of(plan));
  compared_ = true;
  flow_.entered(plan.generation());
  report();
  return true;
}

// Computes the gradients and loss sums of our logical replicas.
void CollectiveSynchronizer::compute() {
  const auto work_of = [&](const Turn& turn) {
    return assembly_.workload->part_of(position(), turn);
  };
  if (!hosted_) {
    sums_.resize(static_cast<size_t>(gradients_.devices()));
    gradients_.compute_on_devices(flow_.place_in(plan_) * gradients_.devices(), work_of, sums_);
    return;
  }
  const auto nodes = hosted_->nodes();
  sums_.resize(nodes.empty() ? 0 : static_cast<size_t>(nodes.back().end - nodes.front().begin));
  targets_.clear();
  for (size_t i = 0; i < nodes.size(); ++i) targets_.push_back({nodes[i], hosted_->gradients(i)});
  gradients_.compute(targets_, work_of, sums_, on_complete_);
}

Synchronizer::StepResult CollectiveSynchronizer::step() {
  const WatchedWork watched(WatchedWork::Kind::computing, "taking a step");
  if (!is_current()) {
    settle();
    return {State::rejoin, {}, {}};
  }
  const Stopwatch computing;
  const double waited_before = assembly_.input_wait_seconds();
  compute();
  const auto update = [this](const compute::LossSums& all) {
    return arguments(position().step, position().optimizer_t + 1, all);
  };
  collective::Contribution contribution(sums_);
  contribution.time = {computing.seconds(), assembly_.input_wait_seconds() - waited_before};
  contribution.note = note_;
  contribution.compare = foresees_checkpoint();
  std::optional<Spending> communicating(TimeUse::communication);
  const auto made =
      session_->step(position().step, contribution, update, {stop_, [this] { return is_over(); }});
  communicating.reset();
  StepResult result;
  result.sums = last_sums_ = made.sums;
  result.costs = {made.update_seconds, made.bytes};
  last_note_ = made.note;
  if (made.outcome == collective::Session::Outcome::ok) {
    if (hosted_) gradients_.load(hosted_->parameters());
    take(made.sums, made.note);
    step_times_.add(*session_);
    if (TimeLedger* const ledger = TimeLedger::of_this_thread()) {
      ledger->move(TimeUse::communication, TimeUse::computing, made.update_seconds);
      ledger->move(TimeUse::communication, TimeUse::slowest,
                   step_times_.slowest_now() - contribution.time.seconds);
    }
    compared_ = made.compared || !is_comparable();
    if (made.compared) flow_.compared(plan_, {});
    return result;
  }
  if (made.outcome == collective::Session::Outcome::differs)
    tell_difference(plan_, position().step + 1, made.odd);
  const bool stopped = made.outcome == collective::Session::Outcome::interrupted;
  result.state = stopped ? State::interrupted : State::rejoin;
  settle();
  return result;
}

// Whether a checkpoint will be taken after this step, as far as is known before the step.
bool CollectiveSynchronizer::foresees_checkpoint() {
  if (!is_comparable() || !setup_.saves_at) return false;
  position_after_ = position();
  assembly_.workload->advance(position_after_);
  return setup_.saves_at(position_after_) || assembly_.workload->finished(position_after_);
}

// The other members learn of the evaluation by the note of the next step, if there is one.
void CollectiveSynchronizer::evaluated(const checkpoint::Evaluations& evaluations) {
  Synchronizer::evaluated(evaluations);
  note_ = note_of(evaluations);
}

void CollectiveSynchronizer::read_weights(std::span<float> to) {
  session_->read_parameters({0, to.size()}, to);
  const auto slot = assembly_.optimizer->average_slot();
  if (!slot) return;
  const compute::Range trained = assembly_.engine->layout().segment(compute::Segment::trainable);
  session_->read_slot(*slot, trained, to.subspan(trained.begin, trained.size()));
}

std::map<std::string, double> CollectiveSynchronizer::metrics() const {
  return step_times_.metrics();
}

std::unique_ptr<Snapshot> CollectiveSynchronizer::snapshot() {
  if (flow_.is_spoiled())
    throw Unavailable("the members' states differ, so that none of them is saved");
  const compute::ParameterLayout& layout = assembly_.engine->layout();
  const auto& names = assembly_.optimizer->slot_names();
  assembly_.copies.resize(1 + names.size());
  for (compute::Floats& copy : assembly_.copies) copy.resize(layout.size());
  std::vector<std::span<float>> slots(assembly_.copies.begin() + 1, assembly_.copies.end());
  copy_state(assembly_.copies[0], slots);
  return std::make_unique<StateSnapshot>(layout, names, assembly_.copies, position());
}

}  // namespace muster::loop
