#include "tests/unit/trainer/collective/protocol/simulated_session.h"

#include <algorithm>
#include <cmath>

namespace muster::collective::protocol {

namespace {

compute::LossSums all_sums(const Books& books, const checkpoint::Position& position, int replicas) {
  compute::LossSums all;
  for (int replica = 0; replica < replicas; ++replica)
    all += books.sums(position, replicas, replica);
  return all;
}

}  // namespace

SharedSimulatedSession::SharedSimulatedSession(const Books& books,
                                               std::unique_ptr<SharedState> state, int member)
    : books_(books),
      state_(std::move(state)),
      member_(member),
      slice_(*state_, books.optimizer()),
      next_(books.empty()) {}

void SharedSimulatedSession::begin(const checkpoint::Position& position) {
  position_ = position;
  const SharedState::Shape& shape = state_->shape();
  size_t node = 0;
  for (int before = 0; before < member_; ++before) node += shape.nodes_of(before).size();
  for (const compute::Subtree& subtree : shape.nodes_of(member_)) {
    const auto sum = books_.gradient(position, shape.replicas, subtree, state_->parameters());
    std::copy(sum.begin(), sum.end(), state_->sum(node++).begin());
    for (int replica = subtree.begin; replica < subtree.end; ++replica)
      state_->set_sums(replica, books_.sums(position, shape.replicas, replica));
  }
  outcome_ = state_->contribute(position.step) ? Outcome::running : Outcome::over;
  waiting_ = Waiting::contributions;
}

bool SharedSimulatedSession::ready() const {
  if (waiting_ == Waiting::turn || state_->fenced()) return true;
  return waiting_ == Waiting::contributions ? state_->all_contributed(position_.step)
                                            : state_->done(position_.step);
}

void SharedSimulatedSession::act() {
  switch (waiting_) {
    case Waiting::contributions:
      if (!state_->all_contributed(position_.step)) {
        outcome_ = Outcome::over;
        return;
      }
      tile_ = state_->shape().first_tile(member_);
      torn_ = false;
      waiting_ = Waiting::turn;
      return;
    case Waiting::turn:
      return update();
    case Waiting::slices:
      outcome_ = state_->done(position_.step) ? Outcome::made : Outcome::over;
  }
}

std::span<float> SharedSimulatedSession::tile(size_t buffer) const {
  const compute::Range range = state_->shape().tile(tile_);
  const auto whole = buffer == 0 ? state_->parameters() : state_->slot(buffer - 1);
  return whole.subspan(range.begin, range.size());
}

// A tile in two turns, between which it is no use to anybody.
void SharedSimulatedSession::update() {
  const SharedState::Shape& shape = state_->shape();
  if (tile_ == shape.first_tile(member_ + 1)) {
    if (state_->finish_slice(position_.step, member_))
      waiting_ = Waiting::slices;
    else
      outcome_ = Outcome::over;
    return;
  }
  const compute::Range range = shape.tile(tile_);
  if (!torn_) {
    if (!state_->begin_tile(position_.step, member_, tile_)) {
      outcome_ = Outcome::over;
      return;
    }
    compute::TreeSum tree(shape.nodes(), range.size());
    std::vector<const float*> nodes;
    for (size_t i = 0; i < shape.nodes().size(); ++i) nodes.push_back(state_->sum(i).data());
    const float* const sum = tree.sum(nodes, range.begin, range.size());
    std::vector<std::span<float>> parts;
    for (size_t i = 0; i < next_.buffers.size(); ++i) {
      const auto old = tile(i);
      parts.push_back(std::span(next_.buffers[i]).subspan(range.begin, range.size()));
      std::copy(old.begin(), old.end(), parts.back().begin());
    }
    books_.optimizer().apply(range, books_.arguments(position_.step, state_->sums()), parts[0],
                             {sum, range.size()}, std::span(parts).subspan(1));
    for (size_t i = 0; i < parts.size(); ++i)
      std::ranges::fill(tile(i).first(range.size() / 2), std::nanf(""));
  } else {
    for (size_t i = 0; i < next_.buffers.size(); ++i)
      std::ranges::copy(std::span(next_.buffers[i]).subspan(range.begin, range.size()),
                        tile(i).begin());
    ++tile_;
  }
  torn_ = !torn_;
}

uint64_t SharedSimulatedSession::settle() {
  state_->fence();
  return state_->settled_step();
}

void SharedSimulatedSession::copy(State& to) {
  if (state_->fenced()) {
    const uint64_t before = state_->settled_step() - 1;
    return slice_.extract(to.buffers[0], to.slots(), books_.arguments(before, state_->sums()));
  }
  std::ranges::copy(state_->parameters(), to.buffers[0].begin());
  for (size_t i = 0; i < state_->shape().slots; ++i)
    std::ranges::copy(state_->slot(i), to.buffers[1 + i].begin());
}

WireEnd::WireEnd(World& world, int id, uint64_t generation, int members, int place)
    : world_(world), id_(id), generation_(generation), members_(members), place_(place) {}

WireEnd::~WireEnd() {
  close();
}

void WireEnd::close() {
  broken_ = true;
  for (const auto& [place, stream] : outgoing_) world_.network().close(stream, Side::client);
  for (const auto& [stream, place] : incoming_) world_.network().close(stream, Side::server);
  outgoing_.clear();
  incoming_.clear();
}

void WireEnd::connect(const CollectivePlan& plan) {
  for (int place = 0; place < members_; ++place) {
    if (place == place_) continue;
    const int process = static_cast<int>(plan.members(place).incarnation()) - 1;
    const int stream = world_.network().connect(id_, world_.is_running(process) ? process : -1);
    PushMessage greeting;
    greeting.shard = place_;
    greeting.header.pull = true;
    greeting.header.generation = generation_;
    world_.network().send(stream, Side::client, greeting);
    outgoing_[place] = stream;
  }
}

void WireEnd::send_state(int to, const State& state) {
  ReplyMessage message;
  for (const auto& buffer : state.buffers)
    message.values.insert(message.values.end(), buffer.begin(), buffer.end());
  if (outgoing_.contains(to)) world_.network().send(outgoing_.at(to), Side::client, message);
}

void WireEnd::send(const Message& message) {
  for (const auto& [place, stream] : outgoing_)
    world_.network().send(stream, Side::client, message);
}

void WireEnd::contribute(uint64_t step, std::vector<float> nodes) {
  PushMessage message;
  message.header.step = step;
  message.gradients = nodes;
  contributions_[{step, place_}] = std::move(nodes);
  sums_.insert({step, place_});
  send(message);
}

bool WireEnd::has_contributions(uint64_t step) const {
  for (int place = 0; place < members_; ++place)
    if (!contributions_.contains({step, place})) return false;
  return true;
}

std::vector<float> WireEnd::contribution(uint64_t step, int place) const {
  return contributions_.at({step, place});
}

void WireEnd::send_sum(uint64_t step) {
  ReplyMessage message;
  message.header.step = step;
  send(message);
}

bool WireEnd::has_sums(uint64_t step) const {
  for (int place = 0; place < members_; ++place)
    if (!sums_.contains({step, place})) return false;
  return true;
}

bool WireEnd::receive(int stream, Side side, const Message& message) {
  if (side == Side::client) {
    const auto found =
        std::ranges::find_if(outgoing_, [&](const auto& entry) { return entry.second == stream; });
    if (found == outgoing_.end()) return false;
    close();  // nothing but an end comes this way
    return true;
  }
  const auto found = incoming_.find(stream);
  if (found == incoming_.end()) return false;
  const int place = found->second;
  if (const auto* push = std::get_if<PushMessage>(&message)) {
    contributions_[{push->header.step, place}] = push->gradients;
  } else if (const auto* reply = std::get_if<ReplyMessage>(&message)) {
    if (reply->values.empty())
      sums_.insert({reply->header.step, place});
    else
      state_ = reply->values;
  } else {
    incoming_.erase(found);
    close();
  }
  return true;
}

WireSimulatedSession::WireSimulatedSession(const Books& books, std::unique_ptr<WireEnd> end,
                                           int replicas, State state)
    : books_(books),
      end_(std::move(end)),
      shape_(books.shape(end_->members(), replicas)),
      state_(std::move(state)),
      step_(state_.position.step) {}

void WireSimulatedSession::begin(const checkpoint::Position& position) {
  position_ = position;
  added_up_ = false;
  outcome_ = end_->broken() ? Outcome::over : Outcome::running;
  std::vector<float> nodes;
  for (const compute::Subtree& subtree : shape_.nodes_of(end_->place())) {
    const auto sum = books_.gradient(position, shape_.replicas, subtree, state_.buffers[0]);
    nodes.insert(nodes.end(), sum.begin(), sum.end());
  }
  end_->contribute(position.step, std::move(nodes));
}

bool WireSimulatedSession::ready() const {
  if (end_->broken()) return true;
  return added_up_ ? end_->has_sums(position_.step) : end_->has_contributions(position_.step);
}

void WireSimulatedSession::act() {
  if (end_->broken()) {
    outcome_ = Outcome::over;
  } else if (!added_up_) {
    added_up_ = true;
    end_->send_sum(position_.step);
  } else {
    update();
    ++step_;
    outcome_ = Outcome::made;
  }
}

void WireSimulatedSession::update() {
  std::vector<std::vector<float>> contributions;
  std::vector<const float*> nodes;
  for (int place = 0; place < end_->members(); ++place)
    contributions.push_back(end_->contribution(position_.step, place));
  for (const auto& one : contributions)
    for (size_t at = 0; at < one.size(); at += shape_.floats) nodes.push_back(one.data() + at);
  compute::TreeSum tree(shape_.nodes(), shape_.floats);
  const float* const sum = tree.sum(nodes, 0, shape_.floats);
  books_.optimizer().apply(
      {0, shape_.floats},
      books_.arguments(position_.step, all_sums(books_, position_, shape_.replicas)),
      state_.buffers[0], {sum, shape_.floats}, state_.slots());
}

}  // namespace muster::collective::protocol
