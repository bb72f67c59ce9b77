#include "tests/unit/trainer/collective/protocol/member.h"

#include <algorithm>

#include "common/error.h"
#include "proto/muster/parameter_server.pb.h"
#include "trainer/group/position.h"

namespace muster::collective::protocol {

Member::Member(SimulatedJob& job, const Process& process)
    : job_(job), process_(process), client_(job, process) {}

void Member::attend() {
  PeerMessage message;
  *message.mutable_member() = report_;
  message.set_leaving(leaving_);
  client_.act(std::move(message));
}

int Member::place_in(const CollectivePlan& plan) const {
  for (int place = 0; place < plan.members_size(); ++place)
    if (plan.members(place).incarnation() == process_.incarnation()) return place;
  return -1;
}

bool Member::left_out() const {
  const CollectivePlan& plan = view().collective();
  return leaving_ && at_ == At::outside && plan.generation() > generation_ && place_in(plan) < 0;
}

bool Member::is_news() const {
  if (view().phase() == GroupView::FINISHED) return true;
  const CollectivePlan& plan = view().collective();
  if (plan.generation() <= generation_ || place_in(plan) < 0) return false;
  return plan.generation() != prepared_ ||
         (view().phase() == GroupView::RUNNING && view().generation() == prepared_ &&
          barred_ != prepared_);
}

bool Member::is_over(uint64_t generation) const {
  return view().phase() != GroupView::RUNNING || view().generation() != generation;
}

bool Member::has_next() const {
  return at_ == At::between && !job_.books().workload(replicas_).finished(position_);
}

bool Member::ready() const {
  switch (at_) {
    case At::outside:
      return is_news();
    case At::joining:
      return end_->broken() || wire_state_.buffers[0].size() > 0 || !end_->arrived_state().empty();
    case At::between:
      return true;
    case At::stepping:
      return session_->ready() || is_over(generation_);
    case At::trained:
      return is_over(generation_);
    case At::finished:
      return false;
  }
  return false;
}

void Member::act() {
  switch (at_) {
    case At::outside:
      return look();
    case At::joining:
      return join();
    case At::between:
      if (!has_next()) {
        at_ = At::trained;
        return;
      }
      if (is_over(generation_)) return start();
      session_->begin(position_);
      at_ = At::stepping;
      if (session_->outcome() == SimulatedSession::Outcome::over) start();
      return;
    case At::stepping:
      if (session_->ready())
        session_->act();
      else
        return start();
      if (session_->outcome() == SimulatedSession::Outcome::over) return start();
      if (session_->outcome() == SimulatedSession::Outcome::made) {
        State state = job_.books().empty();
        session_->copy(state);
        advance(state);
        at_ = At::between;
      }
      return;
    case At::trained:
      return start();
    case At::finished:
      return;
  }
}

void Member::start() {
  settle();
  at_ = At::outside;
}

void Member::settle() {
  if (!session_ || settled_) return;
  const uint64_t step = session_->settle();
  settled_ = true;
  State state = job_.books().empty();
  session_->copy(state);
  if (step == position_.step + 1) {
    advance(state);
  } else {
    state.position = position_;
    job_.books().check(process_.name() + " settles and", generation_, state);
    if (step != position_.step)
      throw Violation(process_.name() + " is at step " + std::to_string(position_.step) +
                      ", its session at " + std::to_string(step));
  }
  report_.set_generation(generation_);
  *report_.mutable_position() = group::to_message(position_);
  report_.set_settled(true);
  report();
}

// A step is made, and this is what it came to.
void Member::advance(const State& state) {
  compute::LossSums all;
  for (int replica = 0; replica < replicas_; ++replica)
    all += job_.books().sums(position_, replicas_, replica);
  position_.sums.add(position_.epoch, all);
  job_.books().workload(replicas_).advance(position_);
  State now = state;
  now.position = position_;
  job_.books().stepped(process_.name(), generation_, now);
  job_.tell(process_.id(), "has step", position_.step);
}

State Member::copy() {
  State state = job_.books().empty();
  session_->copy(state);
  state.position = position_;
  return state;
}

void Member::look() {
  if (view().phase() == GroupView::FINISHED) {
    at_ = At::finished;
    return;
  }
  const CollectivePlan& plan = view().collective();
  const int place = place_in(plan);
  if (plan.generation() != prepared_) return prepare(plan, place);
  enter(plan, place);
}

// As CollectiveSynchronizer does; what is asked for may be what we said before the last steps.
void Member::prepare(const CollectivePlan& plan, int place) {
  memory_.reset();
  end_.reset();
  std::string endpoint;
  const bool source = place == static_cast<int>(plan.source());
  prepared_ = plan.generation();
  if (plan.content() == CollectivePlan::KEEP && (source || plan.members(place).has_state()) &&
      (!session_ || plan.position().step() != position_.step)) {
    barred_ = plan.generation();
    report_.set_failed(plan.generation());
    return report();
  }
  if (plan.shared_memory()) {
    if (source) {
      const auto replicas = static_cast<int>(plan.replicas());
      const State state = fill(plan);
      memory_ = SharedState::make(job_.books().shape(plan.members_size(), replicas),
                                  plan.position().step(), 0);
      std::ranges::copy(state.buffers[0], memory_->parameters().begin());
      std::ranges::copy(state.buffers[1], memory_->slot(0).begin());
      const SharedState::Offer offer = memory_->offer();
      SharedMemoryOffer message;
      message.set_pid(offer.pid);
      message.set_fd(offer.fd);
      message.set_nonce(offer.nonce);
      endpoint = message.SerializeAsString();
    }
  } else {
    wire_state_ = {{}, {{}, {}}};
    if (source || plan.members(place).has_state()) wire_state_ = fill(plan);
    end_ = std::make_unique<WireEnd>(job_, process_.id(), plan.generation(), plan.members_size(),
                                     place);
    endpoint = "here";
  }
  report_.set_prepared(prepared_);
  report_.set_endpoint(endpoint);
  report();
}

State Member::fill(const CollectivePlan& plan) {
  if (plan.content() == CollectivePlan::INITIALIZE) return job_.books().initial();
  State state = job_.books().empty();
  if (plan.content() == CollectivePlan::RESTORE) {
    const auto& folder = job_.storage().checkpoint(plan.checkpoint());
    state.position = folder.position;
    state.buffers = {folder.files.at(0).parameters, folder.files.at(0).slots.at(0)};
    return state;
  }
  return copy();
}

void Member::enter(const CollectivePlan& plan, int place) {
  if (plan.shared_memory()) return open(plan, place);
  joined_ = plan;
  end_->connect(plan);
  if (place == static_cast<int>(plan.source()))
    for (int other = 0; other < plan.members_size(); ++other)
      if (other != place && !plan.members(other).has_state()) end_->send_state(other, wire_state_);
  at_ = At::joining;
}

void Member::open(const CollectivePlan& plan, int place) {
  try {
    if (!memory_) {
      SharedMemoryOffer offer;
      const std::string& text = plan.members(static_cast<int>(plan.source())).endpoint();
      if (!offer.ParseFromString(text)) throw Invalid("it is no offer of memory");
      if (job_.setting().hosts == Setting::Hosts::hidden && process_.place().rank() == 1)
        throw Invalid("it is hidden from this process");
      memory_ = SharedState::open(
          job_.books().shape(plan.members_size(), static_cast<int>(plan.replicas())),
          {offer.pid(), offer.fd(), offer.nonce()});
      refused_ = 0;
    }
    entered(plan,
            std::make_unique<SharedSimulatedSession>(job_.books(), std::move(memory_), place));
  } catch (const Invalid&) {
    const uint64_t source = plan.members(static_cast<int>(plan.source())).incarnation();
    if (std::exchange(refused_, source) == source) report_.set_unshared(source);
    barred_ = plan.generation();
    report_.set_failed(plan.generation());
    report();
  }
}

void Member::join() {
  const uint64_t generation = joined_.generation();
  if (end_->broken()) {
    end_.reset();
    barred_ = generation;
    report_.set_failed(generation);
    report();
    at_ = At::outside;
    return;
  }
  if (wire_state_.buffers[0].empty()) {
    const auto& arrived = end_->arrived_state();
    const auto middle = arrived.begin() + static_cast<std::ptrdiff_t>(arrived.size() / 2);
    wire_state_.buffers = {{arrived.begin(), middle}, {middle, arrived.end()}};
  }
  wire_state_.position = group::from_message(joined_.position());
  entered(joined_, std::make_unique<WireSimulatedSession>(job_.books(), std::move(end_),
                                                          static_cast<int>(joined_.replicas()),
                                                          std::move(wire_state_)));
}

void Member::entered(const CollectivePlan& plan, std::unique_ptr<SimulatedSession> session) {
  session_ = std::move(session);
  generation_ = plan.generation();
  settled_ = false;
  replicas_ = static_cast<int>(plan.replicas());
  position_ = group::from_message(plan.position());
  at_ = At::between;
  std::optional<uint64_t> checkpoint;
  if (plan.content() == CollectivePlan::RESTORE)
    checkpoint = checkpoint::FolderName::parse(plan.checkpoint())->generation;
  job_.books().entered(process_.name(), generation_, replicas_, copy(),
                       plan.content() == CollectivePlan::KEEP, checkpoint);
  report_.set_generation(generation_);
  report_.set_settled(false);
  report();
}

bool Member::ready_to_watch() const {
  if (at_ == At::joining) return !end_->broken() && is_over(joined_.generation());
  if (at_ != At::stepping) return false;
  auto* const wire = dynamic_cast<WireSimulatedSession*>(session_.get());
  return wire && !wire->end().broken() && is_over(generation_);
}

void Member::watch() {
  if (at_ == At::joining)
    end_->close();
  else
    dynamic_cast<WireSimulatedSession&>(*session_).end().close();
}

void Member::leave() {
  leaving_ = true;
  report();
}

WireEnd* Member::wire(uint64_t generation) {
  if (end_ && end_->generation() == generation) return end_.get();
  auto* const session = dynamic_cast<WireSimulatedSession*>(session_.get());
  return session && session->end().generation() == generation ? &session->end() : nullptr;
}

bool Member::receive(int stream, Side side, const Message& message) {
  if (client_.owns(stream, side)) return client_.receive(message);
  wire_receive(stream, side, message);
  return true;
}

void Member::wire_receive(int stream, Side side, const Message& message) {
  const auto* push = std::get_if<PushMessage>(&message);
  if (push && push->header.pull) {
    WireEnd* const end = wire(push->header.generation);
    if (!end || end->broken()) return job_.network().close(stream, side);
    return end->greeted(stream, push->shard);
  }
  auto* const session = dynamic_cast<WireSimulatedSession*>(session_.get());
  if (end_ && end_->receive(stream, side, message)) return;
  if (session) session->end().receive(stream, side, message);
}

}  // namespace muster::collective::protocol
