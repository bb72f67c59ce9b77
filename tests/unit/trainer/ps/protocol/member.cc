#include "tests/unit/trainer/ps/protocol/member.h"

#include <algorithm>

#include "trainer/ps/group/ps_formation.h"
#include "trainer/ps/shard/replicated_shard.h"

namespace muster::ps::protocol {

// A link to a shard over a simulated stream.
class Member::Link : public ShardLink {
 public:
  Link(Member& member, int stream, int shard) : member_(member), stream_(stream), shard_(shard) {
    member_.links_[stream_] = this;
  }
  ~Link() override {
    member_.links_.erase(stream_);
    member_.job_.network().close(stream_, Side::client);
  }
  void send(const PushHeader& header, compute::ConstPlacedFloats placed_gradients,
            compute::PlacedFloats parameters) override {
    const std::span<const float> gradients = placed_gradients.host();
    sequence_ = header.sequence;
    parameters_ = parameters.host();
    state_ = broken_ ? State::broken : State::waiting;
    if (broken_) member_.changed_ = true;
    member_.job_.network().send(stream_, Side::client,
                                PushMessage{shard_, header, {gradients.begin(), gradients.end()}});
  }
  State state() override { return state_; }
  ReplyHeader reply() const override { return reply_; }

  void receive(const Message& message) {
    if (const auto* reply = std::get_if<ReplyMessage>(&message)) {
      if (state_ != State::waiting || reply->header.sequence != sequence_) return;
      std::copy(reply->values.begin(), reply->values.end(), parameters_.begin());
      reply_ = reply->header;
      state_ = State::answered;
    } else {
      broken_ = true;
      if (state_ != State::answered) state_ = State::broken;
    }
    member_.changed_ = true;
  }

 private:
  Member& member_;
  const int stream_;
  const int shard_;
  uint64_t sequence_ = 0;
  std::span<float> parameters_;
  ReplyHeader reply_;
  State state_ = State::idle;
  bool broken_ = false;
};

namespace {

std::vector<compute::Range> ranges_of(SimulatedJob& job) {
  std::vector<compute::Range> ranges;
  for (int shard = 0; shard < job.setting().shards; ++shard)
    ranges.push_back(job.books().range(shard));
  return ranges;
}

MemberProgress::Setup progress_of(SimulatedJob& job) {
  const uint64_t epoch = job.books().tickets_per_epoch();
  const auto advance = [epoch](uint64_t step, checkpoint::Position& position) {
    position.step = step;
    return step == 0 ? 0 : (step - 1) / epoch;
  };
  return {job.setting().sync, advance, job.books().total() / epoch};
}

}  // namespace

Member::Member(SimulatedJob& job, int id, uint32_t rank)
    : job_(job),
      id_(id),
      rank_(rank),
      exchange_(
          ranges_of(job), rank, job.setting().sync ? SyncPolicy::sync : SyncPolicy::async,
          [this](const LinkEnd& end) { return connect(end); }, nullptr, job.setting().backups > 0),
      parameters_(job.books().range(job.setting().shards - 1).end),
      progress_(progress_of(job)) {}

Member::~Member() {
  exchange_.close();
}

std::unique_ptr<ShardLink> Member::connect(const LinkEnd& end) {
  const int server = job_.process_at({Place::Role::ps, end.ps});
  return std::make_unique<Link>(*this, job_.network().connect(id_, server), end.shard);
}

bool Member::ready(const GroupView& view) const {
  const bool running = view.phase() == GroupView::RUNNING;
  switch (state_) {
    case State::outside:
      return running;
    case State::aligning:
    case State::pushing:
      return changed_ || left_behind(view, generation_);
    case State::ready:
      return true;
    case State::finished:
      return running && view.generation() != generation_;
  }
  return false;
}

void Member::act(const GroupView& view) {
  switch (state_) {
    case State::outside:
      return enter(view);
    case State::aligning:
    case State::pushing:
      return look(view);
    case State::ready:
      return compute();
    case State::finished:
      return leave();
  }
}

void Member::leave() {
  exchange_.close();
  state_ = State::outside;
}

void Member::enter(const GroupView& view) {
  generation_ = view.generation();
  entered_ = view;
  state_ = State::aligning;
  exchange_.connect(generation_, serving_of(view, job_.setting().shards));
  exchange_.begin_align(parameters_);
}

uint64_t Member::next_ticket() const {
  return job_.setting().sync ? position_.step : progress_.ticket().value_or(0);
}

void Member::compute() {
  const uint64_t step = position_.step;
  const uint64_t ticket = next_ticket();
  gradient_ = job_.books().gradient(rank_, step, ticket, parameters_);
  if (!job_.setting().sync) job_.books().count_push(ticket);
  state_ = State::pushing;
  exchange_.begin_step(step, ticket, job_.books().sums(rank_, step, ticket), gradient_,
                       parameters_);
}

void Member::look(const GroupView& view) {
  changed_ = false;
  if (const auto result = exchange_.poll()) {
    if (result->outcome == Exchange::Outcome::ok) return settle(*result);
    return leave();
  }
  if (left_behind(view, generation_)) leave();
}

void Member::settle(const Exchange::Result& result) {
  if (state_ == State::aligning)
    progress_.aligned(entered_, result, position_);
  else
    progress_.stepped(result, next_ticket() / job_.books().tickets_per_epoch(), position_);
  const bool finished =
      job_.setting().sync ? step() >= job_.books().total() : !progress_.ticket().has_value();
  state_ = finished ? State::finished : State::ready;
  job_.tell(id_, finished ? "has finished at step" : "is at step", step());
  job_.books().check_parameters("rank " + std::to_string(rank_), step(), parameters_,
                                rank_ == 0 ? &position_.sums : nullptr);
}

bool Member::receive(int stream, const Message& message) {
  const auto found = links_.find(stream);
  if (found == links_.end()) return false;
  found->second->receive(message);
  return true;
}

}  // namespace muster::ps::protocol
