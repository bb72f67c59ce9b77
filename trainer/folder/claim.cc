#include "trainer/folder/claim.h"

#include <chrono>
#include <utility>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "common/threads/pause.h"
#include "trainer/spec/changes.h"

namespace muster::folder {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kRemind{30};

bool same_name(const Owner& owner, const Owner& job) {
  return owner.name_space == job.name_space && owner.job == job.job;
}

// Lists the differing values that decide the weights; "" if none differ.
std::string differences(const Owner& owner, const Owner& job) {
  if (owner.training.is_null()) return "what it trained is not known";
  std::vector<spec::Change> changes = spec::changes_of_weights(owner.training, job.training);
  for (spec::Change& change : changes) change.path = "training." + change.path;
  if (owner.exchange != job.exchange) changes.push_back({"strategy", owner.exchange, job.exchange});
  if (owner.replicas != job.replicas)
    changes.push_back({"replicas that compute a step", owner.replicas, job.replicas});
  constexpr size_t kMostNamed = 10;
  return changes.empty() ? "" : spec::list_changes(changes, kMostNamed);
}

std::string remedies(const Owner& owner, const Owner& job) {
  const bool on_cluster = !job.name_space.empty();
  std::string text = "give this job another folder";
  if (on_cluster) text += " (spec.storage.folder)";
  text += ", which may begin with the weights that are there by initializeFrom";
  if (!job.uid.empty())
    text += "; or, to go on with that training on purpose, set spec.storage.adopt to \"" +
            owner.name() + "\"";
  return text;
}

Invalid refusal(const std::string& message) {
  return Invalid(message, kProtocol);
}

std::string living_owner(const fs::path& storage, const Owner& owner) {
  return "expected that nobody trains in " + storage.string() + ", found that the job " +
         owner.name() +
         " does now: its lease is being renewed. Wait for its end, or give this job another folder";
}

// Blocks until no process holds the folder. Returns false after a stop.
bool wait_for(const Owner& owner, const ClaimRequest& request, const std::stop_token& stop,
              const LeasePace& pace) {
  using Clock = std::chrono::steady_clock;
  const fs::path& storage = request.storage;
  LeaseWatch watch(storage, pace.silence);
  const auto begun = Clock::now();
  auto told = begun - kRemind;
  for (;;) {
    const Holder holder = watch.look();
    if (holder == Holder::none) return true;
    const auto now = Clock::now();
    if (holder == Holder::alive && !same_name(owner, request.job))
      throw refusal(living_owner(storage, owner));
    if (now - begun > pace.patience)
      throw Unavailable("an earlier job " + owner.name() + " still trains in " + storage.string());
    if (now - told >= kRemind) {
      const std::string text = "waiting for the job " + owner.name() + " (uid " + owner.uid +
                               "), which had " + storage.string() + " before, to leave it";
      log::info(text);
      if (request.say && told < begun) request.say(text);
      told = now;
    }
    if (!pause_for(pace.glance, stop)) return false;
  }
}

void require_allowed(const Owner& owner, const ClaimRequest& request) {
  const std::string why = obstacle(request.storage, owner, request.job, request.adopt);
  if (!why.empty()) throw refusal(why);
}

}  // namespace

std::string obstacle(const fs::path& storage, const Owner& owner, const Owner& job,
                     const std::string& adopt) {
  if (owner.uid == job.uid || (!adopt.empty() && adopt == owner.name())) return "";
  if (!same_name(owner, job))
    return "expected " + storage.string() + " to be the folder of the job " + job.name() +
           ", found that the job " + owner.name() + " has trained there: " + remedies(owner, job);
  const std::string differing = differences(owner, job);
  if (differing.empty()) return "";
  return "expected " + storage.string() + " to hold the training of this job, found that of an " +
         "earlier job " + owner.name() + " that differs in what decides the weights: " + differing +
         ". To go on from it, make them the same; else " + remedies(owner, job);
}

std::unique_ptr<Claim> Claim::take(const ClaimRequest& request, const std::stop_token& stop,
                                   const LeasePace& pace) {
  const Owner& job = request.job;
  const fs::path& storage = request.storage;
  muster::create_directories(storage);
  for (;;) {
    const auto written = read_owner(storage);
    const auto owner =
        !written && request.owner_by_contents ? request.owner_by_contents() : written;
    if (owner && owner->uid != job.uid) {
      require_allowed(*owner, request);
      if (!wait_for(*owner, request, stop, pace)) return nullptr;
      if (read_owner(storage) != written) continue;  // another job has come meanwhile
    } else if (owner && job.uid.empty() && is_locked(storage)) {
      throw refusal(living_owner(storage, *owner));
    }
    if (written == job) break;
    if (written) {
      write_owner(storage, job);
    } else if (!create_owner(storage, job)) {
      continue;
    }
    break;
  }
  return std::unique_ptr<Claim>(new Claim(storage, job.uid, stop, pace));
}

Claim::Claim(fs::path storage, std::string uid, const std::stop_token& stop, const LeasePace& pace)
    : storage_(std::move(storage)),
      uid_(std::move(uid)),
      on_stop_(stop, [this] { lost_.request_stop(); }),
      lease_(storage_, pace.renewal, [this] { watch(); }) {}

void Claim::watch() {
  if (taken_) return;
  try {
    require_no_other_owner(storage_, uid_);
    doubtful_ = false;
  } catch (const Invalid& error) {
    if (error.exit_code() != kProtocol) return doubt(error.what());
    taken_ = true;
    log::error(error.what());
    lost_.request_stop();
  } catch (const Unavailable& error) {
    doubt(error.what());
  }
}

void Claim::doubt(const std::string& why) {
  if (!std::exchange(doubtful_, true))
    log::warning("whether the folder is still this job's cannot be seen: " + why);
}

void Claim::require_held() const {
  if (taken_) require_no_other_owner(storage_, uid_);
}

}  // namespace muster::folder
