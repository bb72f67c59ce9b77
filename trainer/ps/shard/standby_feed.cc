#include "trainer/ps/shard/standby_feed.h"

#include <algorithm>
#include <utility>

namespace muster::ps {

namespace {
constexpr uint64_t kNear = 2;  // updates that members may wait for when the standby joins
}

void StandbyFeed::open(uint64_t coupling, Shard& shard) {
  lost_ = false;
  if (coupling != 0) return;
  shard.log().stop();
  standby_ = coupling_ = 0;
  ++session_;
  phase_ = Phase::idle;
  state_.reset();
}

void StandbyFeed::name(uint64_t incarnation) {
  if (coupling_ != 0 || standby_ == incarnation) return;
  standby_ = incarnation;
  ++session_;
}

StandbyFeed::Message StandbyFeed::greet(const OpenRequest& opening) {
  phase_ = Phase::greeted;
  Message message;
  message.header.set_coupling(coupling_);
  *message.header.mutable_hello()->mutable_opening() = opening;
  message.header.mutable_hello()->set_incarnation(standby_);
  return message;
}

std::optional<StandbyFeed::Message> StandbyFeed::next(const Shard& shard) {
  if (phase_ != Phase::flowing) return std::nullopt;
  Message message;
  message.header.set_coupling(coupling_);
  if (state_) {
    *message.header.mutable_state() = std::move(state_->header);
    message.values = std::move(state_->values);
    state_.reset();
    return message;
  }
  if (const StandbyLog::Update* update = shard.log().find(cursor_)) {
    ++cursor_;
    *message.header.mutable_update() = update->header;
    message.values.push_back(update->gradients.lend());
    return message;
  }
  if (!tell_whole_) return std::nullopt;
  tell_whole_ = false;
  message.header.set_whole(true);
  return message;
}

bool StandbyFeed::acknowledged(const Acknowledgement& reply, Shard& shard,
                               Shard::Answers& answers) {
  if (reply.status() != Acknowledgement::OK) return false;
  if (phase_ == Phase::greeted) {
    if (!begin(reply, shard)) return false;
  } else {
    shard.log().acknowledge(std::min(reply.step(), cursor_));
    standby_is_whole_ = reply.whole();
    if (shard.log().mode() == StandbyLog::Mode::behind &&
        shard.step() - shard.log().acknowledged() <= kNear) {
      shard.log().join();
      tell_whole_ = true;
    }
  }
  shard.settle(answers);
  return true;
}

bool StandbyFeed::begin(const Acknowledgement& reply, Shard& shard) {
  lost_ = false;
  if (shard.log().mode() == StandbyLog::Mode::together) {
    // The standby was told, or is about to be, that it is whole, so rank 0 must decide what has
    // become of it.
    lost_ = !reply.resumes() || reply.step() < shard.log().acknowledged() || reply.step() > cursor_;
    if (lost_) return false;
    shard.log().acknowledge(reply.step());
    cursor_ = reply.step();
    tell_whole_ = true;
  } else {
    coupling_ = process_ + (++couplings_ << 20);
    shard.log().start(shard.step());
    state_ = shard.state();
    cursor_ = shard.step();
    tell_whole_ = standby_is_whole_ = false;
  }
  phase_ = Phase::flowing;
  return true;
}

void StandbyFeed::cut(Shard& shard, Shard::Answers& answers) {
  phase_ = Phase::idle;
  state_.reset();
  if (shard.log().mode() != StandbyLog::Mode::behind) return;
  shard.log().stop();
  coupling_ = 0;
  shard.settle(answers);
}

}  // namespace muster::ps
