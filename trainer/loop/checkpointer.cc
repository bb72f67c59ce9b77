#include "trainer/loop/checkpointer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "common/threads/watched_work.h"

namespace muster::loop {

namespace {
constexpr std::chrono::seconds kRemind(30);
constexpr std::chrono::milliseconds kBeatEach(500);
}  // namespace

Checkpointer::Checkpointer(checkpoint::Store& store, Options options)
    : store_(store), options_(std::move(options)), last_time_(Clock::now()) {
  thread_ = std::thread([this] { run(); });
}

Checkpointer::~Checkpointer() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
    hurry_locked();
    changed_.notify_all();
  }
  thread_.join();
}

void Checkpointer::begin(const checkpoint::Position& position, Clock::time_point now) {
  last_step_ = position.step;
  last_epoch_ = position.epoch;
  last_time_ = now;
  const MutexLock lock(mutex_);
  if (owed_ && owed_->snapshot->position().step > position.step) owed_.reset();
}

bool Checkpointer::due(const checkpoint::Position& position, Clock::time_point now) const {
  const uint64_t step = position.step;
  if (step == last_step_ && !requested_.load(std::memory_order_relaxed)) return false;
  const auto& when = options_.when;
  const bool by_step =
      when.every_steps && step / *when.every_steps != last_step_ / *when.every_steps;
  const bool by_epoch =
      when.every_epochs && position.epoch / *when.every_epochs != last_epoch_ / *when.every_epochs;
  const bool by_time =
      when.every_seconds &&
      std::chrono::duration<double>(now - last_time_).count() >= *when.every_seconds;
  if (!by_step && !by_epoch && !by_time && !requested_.load(std::memory_order_relaxed))
    return false;
  return !busy_.load(std::memory_order_acquire);
}

Checkpointer::Task Checkpointer::prepare(Synchronizer& synchronizer, const Json& metrics,
                                         std::optional<checkpoint::End> ended) {
  Task task;
  task.manifest = options_.manifest;
  task.manifest.generation = synchronizer.generation();
  task.manifest.metrics = metrics;
  task.manifest.ended = ended;
  {
    const MutexLock lock(mutex_);
    task.manifest.request = wanted_;
    requested_ = false;
  }
  task.snapshot = synchronizer.snapshot();
  return task;
}

void Checkpointer::take(Synchronizer& synchronizer, const Json& metrics) {
  begin(synchronizer.position(), Clock::now());
  try {
    std::optional<Task> owed = take_owed(synchronizer.generation());
    if (owed) requested_ = false;
    start(owed ? std::move(*owed) : prepare(synchronizer, metrics, {}));
  } catch (const Unavailable& error) {
    tell_failure(last_step_, error.what());
  }
}

void Checkpointer::take_best(Synchronizer& synchronizer, const Json& metrics) {
  wait_until_idle();
  take_owed(synchronizer.generation());
  begin(synchronizer.position(), Clock::now());
  Task task = prepare(synchronizer, metrics, {});
  task.best = true;
  start(std::move(task));
}

void Checkpointer::start(Task task) {
  task.bytes_per_second = options_.when.bytes_per_second.value_or(0);
  const MutexLock lock(mutex_);
  taken_ = task.manifest.request;
  task_ = std::move(task);
  busy_ = true;
  changed_.notify_all();
}

// Returns the best state if it could not be written yet. Nothing is owed after the call.
std::optional<Checkpointer::Task> Checkpointer::take_owed(uint64_t generation) {
  const MutexLock lock(mutex_);
  std::optional<Task> owed = std::exchange(owed_, std::nullopt);
  if (owed) owed->manifest.generation = generation;
  return owed;
}

checkpoint::Store::Found Checkpointer::take_now(Synchronizer& synchronizer, const Json& metrics,
                                                std::optional<checkpoint::End> ended) {
  wait_until_idle();
  if (std::optional<Task> owed = take_owed(synchronizer.generation())) {
    try {
      save(*owed);
    } catch (...) {
      const MutexLock lock(mutex_);
      owed_ = std::move(owed);
      throw;
    }
  }
  Task task = prepare(synchronizer, metrics, ended);
  return save(task);
}

std::string Checkpointer::newest() {
  wait_until_idle();
  const auto names = store_.list();
  return names.empty() ? "" : names.front().text();
}

void Checkpointer::request() {
  requested_ = true;
  const MutexLock lock(mutex_);
  hurry_locked();
}

void Checkpointer::request(const std::string& name) {
  const MutexLock lock(mutex_);
  if (taken_ == name) return;
  wanted_ = name;
  requested_ = true;
  hurry_locked();
}

void Checkpointer::met_before(const std::string& name) {
  const MutexLock lock(mutex_);
  wanted_ = taken_ = met_ = name;
}

void Checkpointer::hurry_locked() {
  if (task_) task_->bytes_per_second = 0;
  if (saving_) saving_->hurry();
}

void Checkpointer::wait_until_idle() {
  MutexLock lock(mutex_);
  hurry_locked();
  // A thread that waits for the writing thread gives signs of life; the writing thread's own work
  // is watched separately.
  while (!changed_.wait_for(lock, kBeatEach, [&] { return !busy_; })) WatchedWork::beat();
}

checkpoint::Store::Found Checkpointer::save(Task& task) {
  try {
    auto found = write(task);
    note_request(task, found);
    return found;
  } catch (...) {
    const MutexLock lock(mutex_);
    taken_ = met_;
    throw;
  }
}

// A checkpoint that was taken before the request names an earlier request, so the request is not
// met yet.
void Checkpointer::note_request(const Task& task, const checkpoint::Store::Found& found) {
  const std::string& name = found.manifest.request;
  {
    const MutexLock lock(mutex_);
    if (name != task.manifest.request) taken_ = name;
    if (name == met_) return;
    met_ = taken_ = name;
  }
  if (options_.met) options_.met(name, found);
}

checkpoint::Store::Found Checkpointer::write(Task& task) {
  const uint64_t step = task.snapshot->position().step;
  if (store_.published(step, task.manifest.generation)) {
    const std::string name = checkpoint::FolderName{step, task.manifest.generation}.text();
    auto found = checkpoint::Store::read(options_.storage / "checkpoints" / name);
    failing_.reset();
    if (task.manifest.is_final() && !found.manifest.is_final())
      throw NameTaken(name + " is published, and not as the final one");
    return found;
  }
  checkpoint::Manifest manifest = task.manifest;
  manifest.position = task.snapshot->position();
  std::filesystem::path published;
  const auto begun = Clock::now();
  const auto temporary = store_.begin(step);
  try {
    task.snapshot->write(temporary, manifest, task.bytes_per_second);
    folder::require_newest(options_.storage, task.manifest.generation, options_.job_uid);
    published = store_.publish(temporary, manifest);
  } catch (...) {
    store_.discard(temporary);
    // Throws if a newer generation exists: its owner may have removed the files that we began, and
    // then the error is not the disk's.
    folder::require_newest(options_.storage, task.manifest.generation, options_.job_uid);
    throw;
  }
  auto found = checkpoint::Store::read(published);  // including slices
  const double took = std::chrono::duration<double>(Clock::now() - begun).count();
  log::info(fmt::format("checkpoint {} was written in {:.3g} s",
                        found.directory.filename().string(), took),
            {{"step", step}, {"seconds", took}, {"final", task.manifest.is_final()}});
  failures_ = 0;
  failing_.reset();
  if (options_.published) options_.published(step, took);
  return found;
}

void Checkpointer::tell_failure(uint64_t step, const std::string& why) {
  if (options_.failed) options_.failed();
  const auto now = Clock::now();
  const int before = failures_++;
  const std::string text =
      "no checkpoint of step " + std::to_string(step) +
      (before > 0 ? ", nor of the " + std::to_string(before) + " before" : "") +
      "; training goes on: " + why;
  if (before > 0 && now - told_ < kRemind) return log::info(text);
  told_ = now;
  log::warning(text);
}

// Returns false if saving may succeed another time.
bool Checkpointer::try_to_save(Task& task) {
  try {
    save(task);
  } catch (const WriteError& error) {
    const uint64_t step = task.snapshot->position().step;
    if (!failing_)
      failing_.emplace("no checkpoint since step " + std::to_string(step) +
                       "; training goes on: " + error.what());
    tell_failure(step, error.what());
    return false;
  } catch (const Unavailable& error) {  // of the group, not of the storage
    tell_failure(task.snapshot->position().step, error.what());
    return false;
  } catch (const Invalid& error) {
    tell_failure(task.snapshot->position().step, error.what());
  }
  return true;
}

void Checkpointer::run() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return closing_ || task_; });
    if (!task_) return;
    Task task = std::move(*task_);
    task_.reset();
    saving_ = task.bytes_per_second > 0 ? task.snapshot.get() : nullptr;
    lock.unlock();
    const bool saved = try_to_save(task);
    lock.lock();
    saving_ = nullptr;
    if (!saved && task.best) owed_ = std::move(task);
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace muster::loop
