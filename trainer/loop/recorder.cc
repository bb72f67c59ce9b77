#include "trainer/loop/recorder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/documents/json.h"
#include "common/job/metric_name.h"
#include "common/program/log.h"
#include "common/program/time_ledger.h"
#include "trainer/loop/evaluation/evaluation.h"
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

// Returns text with at least two digits, however fast a step is.
std::string per_batch_text(double seconds, uint64_t steps) {
  const double milliseconds = 1e3 * seconds / static_cast<double>(steps);
  return fmt::format(", {} ms per batch", milliseconds < 1.0 ? fmt::format("{:.2g}", milliseconds)
                                                             : fmt::format("{:.2f}", milliseconds));
}

// Returns the sums of the epoch so far or, if it has only begun, of the epoch before.
compute::LossSums newest_sums(const checkpoint::Position& position) {
  const compute::LossSums sums = position.sums.of(position.epoch);
  return sums.rows > 0 || position.epoch == 0 ? sums : position.sums.of(position.epoch - 1);
}

Json per_second(double amount, double seconds) {
  return seconds > 0 && amount > 0 ? Json(amount / seconds) : Json();
}

}  // namespace

Recorder::Recorder(Options options, metrics::Reporter& reporter,
                   std::unique_ptr<summary::EventWriter> events)
    : options_(std::move(options)),
      reporter_(reporter),
      events_(std::move(events)),
      started_at_(unix_now()),
      last_(Clock::now()) {
  for (Window* window : {&all_, &recent_, &logged_, &points_}) window->reset(last_);
}

void Recorder::restore(const Json& state) {
  if (state.contains("steps")) earlier_.seconds = number_or(state, "trainSeconds", 0);
  earlier_.examples = integer_or(state, "examples", 0);
  earlier_.steps = integer_or(state, "steps", 0);
  epochs_told_ = static_cast<uint64_t>(integer_or(state, "epochs", 0));
  started_at_ = number_or(state, "startedAt", started_at_);
}

Json Recorder::state(const checkpoint::Position& position) const {
  const compute::LossSums sums = newest_sums(position);
  Json state = {{"epochs", epochs_told_},
                {"trainSeconds", train_seconds()},
                {"examples", earlier_.examples + all_.sums.rows},
                {"steps", earlier_.steps + static_cast<int64_t>(all_.steps)},
                {"startedAt", started_at_}};
  for (const auto& [name, value] : metrics_of(sums)) state[name] = value;
  return state;
}

void Recorder::begin(const checkpoint::Position& position, uint64_t total_steps,
                     uint64_t generation) {
  const bool first = all_.steps == 0;
  last_ = Clock::now();
  if (first) all_.reset(last_);
  for (Window* window : {&recent_, &logged_, &points_}) window->reset(last_);
  begun_ = last_;
  begun_step_ = position.step;
  parts_.begin(take_input_wait());
  progress_.state = "training";
  progress_.step = position.step;
  progress_.epoch = position.epoch;
  progress_.total_steps = total_steps;
  progress_.generation = generation;
  if (first) show_earlier(position);
  if (position.epoch > epochs_told_)
    end_epoch(position, last_, position.next_batch > 0 ? "before" : "at");
  epochs_told_ = position.epoch;
  publish();
}

// Shows the numbers of earlier processes, until there are numbers of our own.
void Recorder::show_earlier(const checkpoint::Position& position) {
  if (const Json rate = examples_per_second(); rate.is_number())
    progress_.examples_per_second = rate.get<double>();
  show(newest_sums(position));
}

void Recorder::show(const compute::LossSums& sums) {
  for (const auto& [name, value] : metrics_of(sums)) {
    if (name == "loss")
      progress_.loss = value;
    else
      progress_.training[name] = value;
  }
}

std::vector<compute::Metric> Recorder::metrics_of(const compute::LossSums& sums) const {
  return compute::metrics_of(options_.loss, sums);
}

void Recorder::step(const checkpoint::Position& position, const compute::LossSums& sums,
                    Clock::time_point now, const StepCosts& costs) {
  for (Window* window : {&all_, &recent_, &logged_, &points_}) window->add(sums);
  durations_.add(seconds(now - last_));
  parts_.end_step(take_input_wait(), costs.update_seconds);
  unreported_bytes_ += costs.bytes;
  last_ = now;
  if (points_.steps >= options_.summary_every_steps) write_points(position, now);
  if (position.epoch > epochs_told_) end_epoch(position, now, "at");
  if (now - recent_.begun < kReport) return;
  report(position, now);
  if (trained_) trained_(now);
  if (now - logged_.begun >= kLog) log_line(position, now);
}

void Recorder::report(const checkpoint::Position& position, Clock::time_point now) {
  const double time = seconds(now - recent_.begun);
  progress_.step = position.step;
  progress_.steps_here = all_.steps;
  progress_.epoch = position.epoch;
  show(recent_.sums);
  if (more_metrics_)
    for (const auto& [name, value] : more_metrics_()) progress_.group[name] = value;
  progress_.examples_per_second = static_cast<double>(recent_.sums.rows) / time;
  take_input_wait();
  reporter_.count("input_wait_seconds", std::exchange(unreported_wait_, 0.0));
  reporter_.count("exchanged_bytes",
                  static_cast<double>(std::exchange(unreported_bytes_, uint64_t{0})));
  if (position.step > begun_step_) {
    const double per_step =
        seconds(now - begun_) / static_cast<double>(position.step - begun_step_);
    const uint64_t left =
        progress_.total_steps > position.step ? progress_.total_steps - position.step : 0;
    progress_.eta_seconds = per_step * static_cast<double>(left);
  }
  const double lifetime = unix_now() - started_at_;
  progress_.goodput = lifetime > 0 ? std::min(1.0, train_seconds() / lifetime) : 1.0;
  publish();
  reporter_.observe("step", std::exchange(durations_, {}));
  parts_.report(reporter_);
  recent_.reset(now);
}

// Counts what training has waited for its input since the last call. Returns what this thread's
// ledger says then; nothing without a ledger.
TimeSpent Recorder::take_input_wait() {
  double waited = 0;
  if (input_wait_) {
    const double before = std::exchange(progress_.input_wait_seconds, input_wait_());
    waited = progress_.input_wait_seconds - before;
    unreported_wait_ += waited;
  }
  TimeLedger* const ledger = TimeLedger::of_this_thread();
  return ledger ? ledger->move(TimeUse::computing, TimeUse::input, waited) : TimeSpent();
}

void Recorder::log_line(const checkpoint::Position& position, Clock::time_point now) {
  if (logged_.steps == 0) return;
  const double time = seconds(now - logged_.begun);
  nlohmann::json fields = {{"step", position.step},
                           {"epoch", position.epoch},
                           {"examplesPerSecond", static_cast<double>(logged_.sums.rows) / time},
                           {"secondsPerBatch", time / static_cast<double>(logged_.steps)}};
  const auto metrics = metrics_of(logged_.sums);
  for (const auto& [name, value] : metrics) fields[name] = value;
  const std::string text =
      fmt::format("step {} of {}: last {} steps: {}{}", position.step, progress_.total_steps,
                  logged_.steps, metrics_text(metrics), per_batch_text(time, logged_.steps));
  if (!options_.quiet) log::info(text, fields);
  logged_.reset(now);
}

void Recorder::write_points(const checkpoint::Position& position, Clock::time_point now) {
  const auto metrics = metrics_of(points_.sums);
  if (events_) {
    for (const auto& [name, value] : metrics)
      events_->scalar(metric_tag("", name), position.step, value);
    events_->scalar("examples_per_second", position.step,
                    static_cast<double>(points_.sums.rows) / seconds(now - points_.begun));
    if (input_wait_) events_->scalar("input_wait_seconds", position.step, input_wait_());
    if (more_metrics_)
      for (const auto& [name, value] : more_metrics_()) events_->scalar(name, position.step, value);
    if (options_.schedule)
      events_->scalar("learning_rate", position.step,
                      options_.schedule->at(position.step > 0 ? position.step - 1 : 0));
  }
  if (const auto loss = compute::value_of(metrics, "loss")) reporter_.gauge("loss", *loss);
  points_.reset(now);
}

// Reports the epoch before position.epoch, if anything of it is known.
void Recorder::end_epoch(const checkpoint::Position& position, Clock::time_point now,
                         const char* when) {
  epochs_told_ = position.epoch;
  const compute::LossSums sums = position.sums.of(position.epoch - 1);
  if (sums.rows == 0) return;
  const auto metrics = metrics_of(sums);
  std::string text = fmt::format("epoch {} done {} step {}: whole epoch: {}", position.epoch, when,
                                 position.step, metrics_text(metrics));
  nlohmann::json fields = {{"epoch", position.epoch}, {"step", position.step}};
  for (const auto& [name, value] : metrics) {
    if (events_) events_->scalar(metric_tag("epoch", name), position.epoch, value);
    fields[name] = value;
  }
  if (logged_.steps > 0) text += per_batch_text(seconds(now - logged_.begun), logged_.steps);
  if (!options_.quiet) log::info(text, fields);
  logged_.reset(now);
}

void Recorder::validated(const checkpoint::Position& position, const Json& validation,
                         Clock::duration took) {
  for (Window* window : {&all_, &recent_, &logged_, &points_}) window->begun += took;
  begun_ += took;
  last_ += took;
  progress_.step = position.step;
  progress_.epoch = position.epoch;
  for_each_number("validation", validation,
                  [&](const std::string& tag, double value) { scalar(tag, position.step, value); });
  show_validation(position.step, validation);
  flush();
}

void Recorder::show_validation(uint64_t step, const Json& validation) {
  progress_.validation = numbers_of(validation);
  progress_.validation_step = step;
  publish();
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

ShowPicture Recorder::shows_pictures(uint64_t step) {
  return [this, step](const std::string& tag, const Picture& picture) {
    if (events_) events_->image(tag, step, picture.png, picture.height, picture.width);
  };
}

void Recorder::flush() {
  if (events_) events_->flush();
}

double Recorder::train_seconds() const {
  return earlier_.seconds + seconds(last_ - all_.begun);
}

Json Recorder::examples_per_second() const {
  return per_second(static_cast<double>(earlier_.examples + all_.sums.rows), train_seconds());
}

Json Recorder::steps_per_second() const {
  return per_second(static_cast<double>(earlier_.steps) + static_cast<double>(all_.steps),
                    train_seconds());
}

}  // namespace muster::loop
