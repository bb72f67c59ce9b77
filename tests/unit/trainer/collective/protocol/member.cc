#include "tests/unit/trainer/collective/protocol/member.h"

#include <algorithm>

#include "common/error.h"
#include "proto/muster/parameter_server.pb.h"
#include "trainer/collective/plan.h"
#include "trainer/group/position.h"

namespace muster::collective::protocol {

Member::Member(SimulatedJob& job, const Process& process)
    : job_(job), process_(process), client_(job, process), flow_(process.incarnation()) {}

void Member::attend() {
  PeerMessage message;
  *message.mutable_member() = flow_.report();
  message.set_leaving(leaving_);
  client_.act(std::move(message));
}

bool Member::left_out() const {
  return leaving_ && at_ == At::outside && lets_go(view(), process_.incarnation());
}

bool Member::has_next() const {
  return at_ == At::between && !job_.books().workload(replicas_).finished(position_);
}

bool Member::ready() const {
  switch (at_) {
    case At::outside:
      return flow_.next(view()) != MemberFlow::Next::wait;
    case At::joining:
      return end_->broken() || wire_state_.buffers[0].size() > 0 || !end_->arrived_state().empty();
    case At::between:
      return true;
    case At::stepping:
      return session_->ready() || is_over();
    case At::trained:
      return is_over();
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
      if (is_over()) return start();
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
  if (!flow_.is_inside()) return;
  const uint64_t step = session_->settle();
  State state = job_.books().empty();
  session_->copy(state);
  if (flow_.made_step_after(position_.step, step)) {
    advance(state);
  } else {
    state.position = position_;
    job_.books().check(process_.name() + " settles and", generation(), state);
  }
  flow_.settled(group::to_message(position_));
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
  job_.books().stepped(process_.name(), generation(), now);
  job_.tell(process_.id(), "has step", position_.step);
}

State Member::copy() {
  State state = job_.books().empty();
  session_->copy(state);
  state.position = position_;
  return state;
}

void Member::look() {
  const CollectivePlan& plan = view().collective();
  switch (flow_.next(view())) {
    case MemberFlow::Next::end:
      at_ = At::finished;
      return;
    case MemberFlow::Next::prepare:
      return prepare(plan, flow_.place_in(plan));
    case MemberFlow::Next::enter:
      return enter(plan, flow_.place_in(plan));
    case MemberFlow::Next::wait:
      return;
  }
}

// As CollectiveSynchronizer does.
void Member::prepare(const CollectivePlan& plan, int place) {
  memory_.reset();
  end_.reset();
  if (flow_.is_outdated(plan, position_.step)) return fail(plan.generation());
  std::string endpoint;
  if (plan.shared_memory()) {
    if (place == static_cast<int>(plan.source())) {
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
    if (holds_state(plan, place)) wire_state_ = fill(plan);
    end_ = std::make_unique<WireEnd>(job_, process_.id(), plan.generation(), plan.members_size(),
                                     place);
    endpoint = "here";
  }
  flow_.prepared(plan.generation(), endpoint);
  report();
}

void Member::fail(uint64_t generation) {
  flow_.failed(generation);
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
      if (!holds_state(plan, other)) end_->send_state(other, wire_state_);
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
    }
    entered(plan,
            std::make_unique<SharedSimulatedSession>(job_.books(), std::move(memory_), place));
  } catch (const Invalid&) {
    flow_.memory_refused(view(), plan);
    fail(plan.generation());
  }
}

void Member::join() {
  if (end_->broken()) {
    end_.reset();
    at_ = At::outside;
    return fail(joined_.generation());
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
  flow_.entered(plan.generation());
  replicas_ = static_cast<int>(plan.replicas());
  position_ = group::from_message(plan.position());
  at_ = At::between;
  std::optional<uint64_t> checkpoint;
  if (plan.content() == CollectivePlan::RESTORE)
    checkpoint = checkpoint::FolderName::parse(plan.checkpoint())->generation;
  job_.books().entered(process_.name(), generation(), replicas_, copy(),
                       plan.content() == CollectivePlan::KEEP, checkpoint);
  report();
}

bool Member::ready_to_watch() const {
  if (at_ == At::joining) return !end_->broken() && !runs(view(), joined_.generation());
  if (at_ != At::stepping) return false;
  auto* const wire = dynamic_cast<WireSimulatedSession*>(session_.get());
  return wire && !wire->end().broken() && is_over();
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
