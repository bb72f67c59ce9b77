#include "trainer/loop/recorder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/json.h"
#include "common/log.h"
#include "trainer/loop/loss_text.h"

namespace muster::loop {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kReport{250};
constexpr milliseconds kLog{5000};

double seconds(Recorder::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double mean_loss(const compute::LossSums& sums) {
  return sums.rows > 0 ? sums.loss / static_cast<double>(sums.rows) : 0.0;
}

double accuracy(const compute::LossSums& sums) {
  return sums.rows > 0 ? static_cast<double>(sums.correct) / static_cast<double>(sums.rows) : 0.0;
}

Json to_json(const compute::LossSums& sums) {
  return {{"loss", sums.loss}, {"correct", sums.correct}, {"rows", sums.rows}};
}

compute::LossSums from_json(const Json& json) {
  compute::LossSums sums;
  sums.loss = number_or(json, "loss", 0);
  sums.correct = integer_or(json, "correct", 0);
  sums.rows = integer_or(json, "rows", 0);
  return sums;
}

}  // namespace

Recorder::Recorder(Options options, metrics::Reporter& reporter,
                   std::unique_ptr<summary::EventWriter> events)
    : options_(options),
      reporter_(reporter),
      events_(std::move(events)),
      started_at_(unix_now()),
      last_(Clock::now()) {
  for (Window* window : {&all_, &recent_, &logged_, &points_}) window->reset(last_);
}

void Recorder::restore(const Json& state) {
  epoch_ = from_json(member(state, "epoch"));
  last_epoch_ = from_json(member(state, "lastEpoch"));
  epoch_number_ = static_cast<uint64_t>(integer_or(state, "epochNumber", 0));
  earlier_seconds_ = number_or(state, "trainSeconds", 0);
  started_at_ = number_or(state, "startedAt", started_at_);
}

Json Recorder::state() const {
  Json state = {{"loss", mean_loss(recent_.sums.rows > 0 ? recent_.sums : epoch_)},
                {"epoch", to_json(epoch_)},
                {"lastEpoch", to_json(last_epoch_)},
                {"epochNumber", epoch_number_},
                {"trainSeconds", train_seconds()},
                {"startedAt", started_at_}};
  if (options_.classification) state["accuracy"] = accuracy(epoch_.rows > 0 ? epoch_ : last_epoch_);
  return state;
}

Json Recorder::state(uint64_t step) {
  constexpr size_t kKept = 8;
  saved_[step] = state();
  if (saved_.size() > kKept) saved_.erase(saved_.begin());
  return saved_[step];
}

// The group was put back to a checkpoint: what came after it did not happen.
void Recorder::rewind(uint64_t step) {
  saved_.erase(saved_.upper_bound(step), saved_.end());
  const auto found = saved_.find(step);
  const Json state = found == saved_.end() ? Json() : found->second;
  epoch_ = from_json(member(state, "epoch"));
  last_epoch_ = from_json(member(state, "lastEpoch"));
  epoch_number_ = static_cast<uint64_t>(integer_or(state, "epochNumber", 0));
}

void Recorder::begin(const checkpoint::Position& position, uint64_t total_steps,
                     uint64_t generation) {
  const bool first = all_.steps == 0;
  if (position.step < step_) rewind(position.step);
  step_ = position.step;
  last_ = Clock::now();
  if (first) all_.reset(last_);
  for (Window* window : {&recent_, &logged_, &points_}) window->reset(last_);
  progress_.state = "training";
  progress_.step = position.step;
  progress_.epoch = position.epoch;
  progress_.total_steps = total_steps;
  progress_.generation = generation;
  publish();
}

void Recorder::step(const checkpoint::Position& position, const compute::LossSums& sums,
                    Clock::time_point now) {
  for (Window* window : {&all_, &recent_, &logged_, &points_}) window->add(sums);
  epoch_ += sums;
  step_ = position.step;
  durations_.add(seconds(now - last_));
  last_ = now;
  if (points_.steps >= options_.summary_every_steps) write_points(position, now);
  if (position.epoch != epoch_number_) end_epoch(position.epoch, position.step);
  if (now - recent_.begun < kReport) return;
  report(position, now);
  if (now - logged_.begun >= kLog) log_line(position, now);
}

void Recorder::report(const checkpoint::Position& position, Clock::time_point now) {
  const double time = seconds(now - recent_.begun);
  progress_.step = position.step;
  progress_.epoch = position.epoch;
  progress_.loss = mean_loss(recent_.sums);
  if (options_.classification) progress_.metrics["accuracy"] = accuracy(recent_.sums);
  progress_.examples_per_second = static_cast<double>(recent_.sums.rows) / time;
  const double per_step = seconds(now - all_.begun) / static_cast<double>(all_.steps);
  const uint64_t left =
      progress_.total_steps > position.step ? progress_.total_steps - position.step : 0;
  progress_.eta_seconds = per_step * static_cast<double>(left);
  const double lifetime = unix_now() - started_at_;
  progress_.goodput = lifetime > 0 ? std::min(1.0, train_seconds() / lifetime) : 1.0;
  publish();
  reporter_.observe("step", std::exchange(durations_, {}));
  recent_.reset(now);
}

void Recorder::log_line(const checkpoint::Position& position, Clock::time_point now) {
  if (logged_.steps == 0) return;
  const double time = seconds(now - logged_.begun);
  nlohmann::json fields = {{"step", position.step},
                           {"epoch", position.epoch},
                           {"loss", mean_loss(logged_.sums)},
                           {"examplesPerSecond", static_cast<double>(logged_.sums.rows) / time},
                           {"secondsPerBatch", time / static_cast<double>(logged_.steps)}};
  std::string text = fmt::format("step {} of {}, cost {}", position.step, progress_.total_steps,
                                 loss_text(mean_loss(logged_.sums)));
  if (options_.classification) {
    fields["accuracy"] = accuracy(logged_.sums);
    text += fmt::format(", accuracy {:.4f}", accuracy(logged_.sums));
  }
  text += fmt::format(", {:.2f} ms per batch", 1e3 * time / static_cast<double>(logged_.steps));
  if (!options_.quiet) log::info(text, fields);
  logged_.reset(now);
}

void Recorder::write_points(const checkpoint::Position& position, Clock::time_point now) {
  if (events_) {
    events_->scalar("loss", position.step, mean_loss(points_.sums));
    if (options_.classification) events_->scalar("accuracy", position.step, accuracy(points_.sums));
    events_->scalar("examples_per_second", position.step,
                    static_cast<double>(points_.sums.rows) / seconds(now - points_.begun));
    if (options_.schedule)
      events_->scalar("learning_rate", position.step,
                      options_.schedule->at(position.step > 0 ? position.step - 1 : 0));
  }
  reporter_.gauge("loss", mean_loss(points_.sums));
  points_.reset(now);
}

void Recorder::end_epoch(uint64_t epoch, uint64_t step) {
  if (events_ && epoch_.rows > 0) {
    events_->scalar("epoch_loss", epoch, mean_loss(epoch_));
    if (options_.classification) events_->scalar("epoch_accuracy", epoch, accuracy(epoch_));
  }
  std::string text =
      fmt::format("epoch {} done at step {}: cost {}", epoch, step, loss_text(mean_loss(epoch_)));
  nlohmann::json fields = {{"epoch", epoch}, {"step", step}, {"loss", mean_loss(epoch_)}};
  if (options_.classification) {
    text += fmt::format(", accuracy {:.4f}", accuracy(epoch_));
    fields["accuracy"] = accuracy(epoch_);
  }
  if (!options_.quiet) log::info(text, fields);
  last_epoch_ = epoch_;
  epoch_ = {};
  epoch_number_ = epoch;
}

void Recorder::end(const checkpoint::Position& position) {
  if (recent_.steps > 0) report(position, std::max(last_, recent_.begun + milliseconds(1)));
  if (logged_.steps > 0) log_line(position, std::max(last_, logged_.begun + milliseconds(1)));
  flush();
}

void Recorder::publish() {
  progress_.last_checkpoint_step = checkpoint_step_;
  progress_.last_checkpoint_time = checkpoint_time_;
  reporter_.update(progress_);
}

void Recorder::checkpoint_published(uint64_t step, double seconds) {
  checkpoint_step_ = step;
  checkpoint_time_ = unix_now();
  reporter_.count("checkpoints");
  reporter_.observe("checkpoint", seconds);
}

void Recorder::checkpoint_failed() {
  reporter_.count("checkpoints_failed");
}

void Recorder::set_state(const std::string& state) {
  progress_.state = state;
  publish();
}

void Recorder::scalar(const std::string& tag, uint64_t step, double value) {
  if (events_) events_->scalar(tag, step, value);
}

void Recorder::flush() {
  if (events_) events_->flush();
}

double Recorder::train_seconds() const {
  return earlier_seconds_ + seconds(last_ - all_.begun);
}

double Recorder::epoch_loss() const {
  return mean_loss(last_epoch_.rows > 0 ? last_epoch_ : epoch_);
}

double Recorder::examples_per_second() const {
  const double time = seconds(last_ - all_.begun);
  return time > 0 ? static_cast<double>(all_.sums.rows) / time : 0;
}

double Recorder::steps_per_second() const {
  const double time = seconds(last_ - all_.begun);
  return time > 0 ? static_cast<double>(all_.steps) / time : 0;
}

}  // namespace muster::loop
