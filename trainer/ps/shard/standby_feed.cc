#include "trainer/ps/shard/standby_feed.h"

#include <algorithm>
#include <utility>

#include "trainer/host/instruction_set.h"

namespace muster::ps {

namespace {
constexpr uint64_t kNear = 2;  // largest distance, in updates, at which the standby joins
}

void StandbyFeed::open(uint64_t coupling, Shard& shard) {
  lost_ = false;
  comparison_.reset();
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
  if (comparison_ && !comparison_->asked && comparison_->step == cursor_) {
    comparison_->asked = true;
    message.header.set_compare(true);
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
    if (reply.has_digest() && comparison_ && reply.step() == comparison_->step)
      comparison_->digest = reply.digest();
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
  alike_ = reply.fuses() == host::fuses();
  comparison_.reset();
  if (shard.log().mode() == StandbyLog::Mode::together) {
    // The standby was told, or will soon be told, that it is whole, so rank 0 must decide whether
    // its copy counts.
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

bool StandbyFeed::is_together(const Shard& shard) const {
  return phase_ == Phase::flowing && shard.log().mode() == StandbyLog::Mode::together;
}

void StandbyFeed::compare(const Shard& shard) {
  const bool is_possible = is_together(shard) && alike_;
  const bool is_repeated = comparison_ && comparison_->step == shard.step();
  if (is_possible && is_repeated) return;
  comparison_.reset();
  if (!is_possible) return;
  comparison_ = Comparison();
  comparison_->step = shard.step();
}

bool StandbyFeed::awaits_digest(uint64_t step, const Shard& shard) const {
  return comparison_ && comparison_->step == step && !comparison_->digest && is_together(shard);
}

std::optional<uint32_t> StandbyFeed::digest(uint64_t step) const {
  if (!comparison_ || comparison_->step != step) return std::nullopt;
  return comparison_->digest;
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
