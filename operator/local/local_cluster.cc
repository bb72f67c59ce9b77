#include "operator/local/local_cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <fstream>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/job/results.h"
#include "common/net/key_pair.h"
#include "common/random.h"
#include "common/system/file.h"
#include "common/system/system_words.h"
#include "common/text/shorten.h"
#include "operator/api/disruption.h"
#include "operator/api/progress.h"
#include "operator/api/status.h"
#include "operator/local/hosts/protocol.h"
#include "operator/local/processes/ports.h"
#include "operator/local/yaml_text.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;
using plan::ObservedReplica;
using plan::Phase;

void append_line(const fs::path& path, const std::string& line) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  const auto fail = [&] { throw WriteError("cannot write " + path.string(), errno); };
  if (!file) fail();
  const std::string text = line + '\n';
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = ::write(file.get(), rest.data(), rest.size());
    if (written < 0 && errno != EINTR) fail();
    if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
  }
}

// Returns local time, in the form of the trainer's logs: "2026-11-21 12:34:56".
std::string wall_clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local)};
}

// The longest time that a replica lives on a lost host; see protocol.h.
constexpr auto kUnseen = kPatience + std::chrono::seconds(5);

// Creates the folder with a key pair, which only this user can read, if it does not exist yet.
void make_keys(const fs::path& folder) {
  if (is_there(folder / KeyPair::kCertificateFile)) return;
  muster::create_directories(folder);
  std::error_code error;
  fs::permissions(folder, fs::perms::owner_all, error);
  if (error) throw WriteError(folder.string(), error.value());
  write_key_pair(folder, make_key_pair());
}

}  // namespace

std::string last_line_of(const fs::path& log, uintmax_t begin) {
  constexpr std::streamoff kTail = 4096;
  std::ifstream file(log, std::ios::binary);
  if (!file.seekg(0, std::ios::end)) return "";
  const std::streamoff size = file.tellg();
  const std::streamoff from = std::max(static_cast<std::streamoff>(begin), size - kTail);
  if (from >= size) return "";
  std::string text(static_cast<size_t>(size - from), '\0');
  file.seekg(from);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return last_line(text);
}

LocalCluster::LocalCluster(api::TrainingJob job, JobState state, Setting setting,
                           EventSink on_event)
    : job_(std::move(job)),
      state_(std::move(state)),
      setting_(std::move(setting)),
      on_event_(std::move(on_event)),
      wall_seconds_before_(state_.wall_seconds),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      prober_([this] { wake(); }) {
  state_.working_directory = setting_.working_directory.string();
  muster::create_directories(setting_.directory.logs());
  restore_replicas();
  choose_job_ports();
  save();
}

LocalCluster::~LocalCluster() = default;

void LocalCluster::restore_replicas() {
  for (ObservedReplica seen : state_.replicas) {
    if (is_live(seen)) {
      seen.phase = Phase::failed;
      seen.reason = api::kRunnerLost;
      seen.finished = now();
    }
    Replica replica;
    replica.seen = std::move(seen);
    replicas_.push_back(std::move(replica));
  }
}

void LocalCluster::choose_job_ports() {
  if (setting_.hosts != nullptr) return;  // Hosts::add has given the addresses
  state_.addresses.hosts.clear();
  for (const MovedPort& moved : choose_ports(port_names(job_), state_.addresses.ports)) {
    emit(job_, {plan::Event::Kind::warning, "PortInUse",
                "port " + std::to_string(moved.from) + " of " + moved.name +
                    " is in use by another program; it is now " + std::to_string(moved.to)});
  }
}

void LocalCluster::save() {
  state_.wall_seconds = wall_seconds();
  state_.replicas = replicas();
  save_state(setting_.directory, state_);
}

std::vector<ObservedReplica> LocalCluster::replicas() const {
  std::vector<ObservedReplica> seen;
  for (const Replica& replica : replicas_) seen.push_back(replica.seen);
  return seen;
}

double LocalCluster::wall_seconds() const {
  return wall_seconds_before_ + std::chrono::duration<double>(Clock::now() - begun_).count();
}

api::Time LocalCluster::now() const {
  return api::steady_time();
}

std::optional<api::TrainingJob> LocalCluster::get(const std::string& key) {
  if (key != job_.name) return std::nullopt;
  if (!job_.created) {
    // The job's time begins with the first look of this run. What was before was counted, and
    // nothing has run the job since.
    job_.created = now();
    if (Json& goodput = job_.status.goodput; goodput.is_object()) {
      goodput["until"] = api::format_time(*job_.created);
      goodput.erase("process");  // it is gone
    }
  }
  return job_;
}

plan::Observed LocalCluster::observe(const api::TrainingJob&) {
  plan::Observed observed;
  observed.nonce = random_digits();
  for (const Replica& replica : replicas_) {
    observed.replicas.push_back(replica.seen);
    ObservedReplica& seen = observed.replicas.back();
    seen.ready =
        seen.phase == Phase::running && (!replica.has_health || prober_.is_ready(seen.uid));
  }
  const fs::path& folder = setting_.directory.root();
  const Json results = read_results(folder);
  Json progress = prober_.progress();
  // The leader may have ended some steps after its last answer.
  const int64_t last = integer_or(results, "step", 0);
  if (progress.is_object() && last > integer_or(progress, "step", last)) progress["step"] = last;
  observed.progress = api::progress_of(progress);
  observed.ledger = ledger_of(std::move(progress), results);
  observed.results = api::results_of(results);
  observed.final_checkpoint_evaluated = bool_or(evaluation_of(folder, results), "final", false);
  return observed;
}

// Returns what the leading replica says of its time: in its last answer or, once it has succeeded,
// in the results.
std::optional<plan::ProcessLedger> LocalCluster::ledger_of(Json progress,
                                                           const Json& results) const {
  bool is_over = false, lives = false;
  for (const Replica& replica : replicas_) {
    if (!plan::leads(job_, replica.seen.role, replica.seen.index)) continue;
    is_over = is_over || replica.seen.phase == Phase::succeeded;
    lives = lives || is_live(replica.seen);
  }
  if (!is_over && !lives) return std::nullopt;
  if (is_over) {
    if (!progress.is_object()) progress = Json::object();
    progress.update(
        {{"step", integer_or(results, "step", 0)}, {"ledger", member(results, "ledger")}});
  }
  auto ledger = plan::ProcessLedger::of(progress);
  if (!ledger) return ledger;
  ledger->final = is_over;
  ledger->age = std::chrono::duration<double>(prober_.age()).count();
  return ledger;
}

bool LocalCluster::publish_status(const api::TrainingJob&, const api::JobStatus& status) {
  state_.status = api::to_json(status);
  save();
  job_.status = status;
  const auto may_go = [&](const Replica& replica) {
    return replica.seen.deleting && !is_live(replica.seen) &&
           std::ranges::find(status.counted_uids, replica.seen.uid) != status.counted_uids.end();
  };
  if (std::erase_if(replicas_, may_go) > 0) wake();
  return true;
}

void LocalCluster::create(const api::TrainingJob& job,
                          std::span<const plan::CreateReplica> replicas) {
  for (const plan::CreateReplica& replica : replicas) create_one(job, replica);
}

void LocalCluster::create_one(const api::TrainingJob& job, const plan::CreateReplica& wanted) {
  const std::string name = replica_name(job, wanted.role, wanted.index);
  for (const Replica& replica : replicas_) {
    const ObservedReplica& seen = replica.seen;
    if (seen.role != wanted.role || seen.index != wanted.index) continue;
    if (seen.attempt == wanted.attempt) return;
    if (is_live(seen)) throw Unavailable(name + ": an earlier attempt has not ended yet");
  }
  Replica replica;
  replica.seen.role = wanted.role;
  replica.seen.index = wanted.index;
  replica.seen.run = wanted.run;
  replica.seen.attempt = wanted.attempt;
  replica.seen.uid = name + "-" + std::to_string(wanted.attempt);
  replicas_.push_back(std::move(replica));
  try {
    if (setting_.hosts != nullptr) {
      const auto moved = setting_.hosts->begin(name, state_.addresses);
      if (moved) emit(job_, {plan::Event::Kind::normal, "Moved", *moved});
    }
    save();  // from here on the attempt is used up, whatever happens to us
    try_to_start(replicas_.back());
  } catch (...) {
    replicas_.pop_back();
    throw;
  }
  wake();
}

// The log is where people look; that it cannot be written is no reason to say nothing elsewhere.
void LocalCluster::tell_in_log(const ObservedReplica& seen, const std::string& line) const {
  std::ofstream log(setting_.directory.log(replica_name(job_, seen.role, seen.index)),
                    std::ios::app);
  log << "muster: " << line << '\n';
}

// A full disk is waited for. A limit on the size of files (EFBIG) is one of this process, which
// ends because of it. Whatever else keeps a process from being started is the end of this attempt,
// so that it counts, and the next one comes after a pause that grows.
void LocalCluster::try_to_start(Replica& replica) {
  const auto fail = [&](const std::exception& error) {
    replica.process.reset();
    replica.seen.reason = api::kNotStarted;
    replica.seen.last_line = error.what();
    note_end(replica.seen);
    tell_in_log(replica.seen, error.what());
  };
  try {
    start(replica);
  } catch (const WriteError& error) {
    if (!error.lasting() || error.error() == EFBIG) throw;
    fail(error);
  } catch (const Unavailable& error) {
    fail(error);
  }
}

void LocalCluster::start(Replica& replica) {
  ObservedReplica& seen = replica.seen;
  const std::string name = replica_name(job_, seen.role, seen.index);
  muster::create_directories(setting_.directory.replica(name));
  if (!job_.training.is_null()) {
    write_file_atomically(setting_.directory.training(name), to_yaml(job_.training));
    if (const std::string keys = job_.status.keys(); !keys.empty())
      make_keys(setting_.directory.keys(keys));
  }
  const ReplicaLaunch launch =
      replica_launch(job_, seen.role, seen.index, seen.attempt, setting_, state_.addresses);
  replica.log_begin = begin_log(seen);
  replica.process.emplace(
      setting_.hosts != nullptr
          ? setting_.hosts->launch(name, launch.launch, setting_.directory.replica(name))
          : launch.launch);
  replica.grace = launch.grace;
  replica.has_health = launch.runs_trainer;
  seen.phase = Phase::running;
  seen.started = now();
  if (launch.runs_trainer) {
    prober_.watch(seen.uid, state_.addresses.of(name + "/http"),
                  plan::leads(job_, seen.role, seen.index));
  }
}

uintmax_t LocalCluster::begin_log(const ObservedReplica& seen) {
  const std::string name = replica_name(job_, seen.role, seen.index);
  const fs::path log = setting_.directory.log(name);
  append_line(log, "--- " + name + " attempt " + std::to_string(seen.attempt) + ", " +
                       wall_clock_text() + " ---");
  std::error_code error;
  const uintmax_t size = fs::file_size(log, error);
  return error ? 0 : size;
}

void LocalCluster::remove(const api::TrainingJob&, std::span<const plan::RemoveReplica> replicas) {
  for (const plan::RemoveReplica& replica : replicas) remove_one(replica);
}

void LocalCluster::remove_one(const plan::RemoveReplica& wanted) {
  const auto found = std::ranges::find_if(
      replicas_, [&](const Replica& replica) { return replica.seen.uid == wanted.uid; });
  if (found == replicas_.end()) return;
  if (!is_live(found->seen)) {
    replicas_.erase(found);
    return;
  }
  if (found->seen.deleting) return;
  found->seen.deleting = true;
  if (!found->process) return;  // its host was lost
  found->kill_at = Clock::now() + found->grace;
  found->process->signal(SIGTERM);
  found->process->signal(SIGCONT);  // a stopped process gets no other signal
}

void LocalCluster::emit(const api::TrainingJob&, const plan::Event& event) {
  on_event_(event);
  // The file is a record for later. A failure to write it does not fail the job: the status has all
  // important facts.
  std::ofstream file(setting_.directory.events(), std::ios::app);
  file << wall_clock_text() << (event.kind == plan::Event::Kind::warning ? " warning " : " info ")
       << event.reason << ": " << event.message << std::endl;
}

void LocalCluster::remove_job(const api::TrainingJob&) {}

void LocalCluster::suspend() {
  job_.suspend = true;
  wake();
}

void LocalCluster::scale(int workers) {
  api::TrainingJob scaled = job_;
  scaled.replicas.at(api::Role::worker).replicas = workers;
  if (setting_.hosts != nullptr)
    setting_.hosts->add(replicas_to_place(scaled), wanted_replicas(scaled), state_.addresses);
  else
    add_ports(port_names(scaled), state_.addresses.ports);
  job_ = std::move(scaled);
  job_.generation = ++state_.generation;
  state_.workers = workers;  // written with the status, because of the new generation
  wake();
}

void LocalCluster::kill_all() {
  for (Replica& replica : replicas_) {
    if (!replica.process) continue;
    replica.seen.deleting = true;  // we end it, so its end is no failure
    replica.process->signal(SIGKILL);
  }
}

std::vector<SilentReplica> LocalCluster::silent_replicas() const {
  std::vector<SilentReplica> silent;
  for (const Replica& replica : replicas_) {
    if (!replica.process || !replica.has_health || replica.seen.deleting) continue;
    const auto since = prober_.silence(replica.seen.uid);
    if (since >= kSilent) {
      silent.push_back({replica_name(job_, replica.seen.role, replica.seen.index),
                        std::chrono::floor<std::chrono::seconds>(since)});
    }
  }
  return silent;
}

void LocalCluster::wake() {
  ::eventfd_write(wake_.get(), 1);
}

bool LocalCluster::wait(std::optional<api::Time> until, int descriptor) {
  std::vector<pollfd> watched = {{wake_.get(), POLLIN, 0}, {descriptor, POLLIN, 0}};
  for (const Replica& replica : replicas_) {
    if (replica.process) watched.push_back({replica.process->descriptor(), POLLIN, 0});
  }
  if (::poll(watched.data(), watched.size(), poll_timeout(until)) < 0 && errno != EINTR) {
    throw Unavailable("poll: " + system_words(errno));
  }
  eventfd_t count = 0;
  const bool woken = ::eventfd_read(wake_.get(), &count) == 0;
  bool ended = collect_ended();
  ended = end_lost() || ended;
  kill_overdue();
  return woken || ended;
}

int LocalCluster::poll_timeout(std::optional<api::Time> until) const {
  using std::chrono::milliseconds;
  std::optional<milliseconds> left;
  if (until) left = *until - now();
  const auto consider = [&](Clock::time_point then) {
    const auto until_then = std::chrono::ceil<milliseconds>(then - Clock::now());
    left = left ? std::min(*left, until_then) : until_then;
  };
  for (const Replica& replica : replicas_) {
    if (replica.process && replica.kill_at) consider(*replica.kill_at);
    if (replica.over_at) consider(*replica.over_at);
  }
  if (!left) return -1;
  return static_cast<int>(std::clamp<int64_t>(left->count(), 0, INT_MAX));
}

bool LocalCluster::collect_ended() {
  bool any = false;
  for (Replica& replica : replicas_) {
    if (!replica.process) continue;
    const std::optional<int> exit_code = replica.process->collect();
    if (!exit_code) continue;
    end(replica, *exit_code);
    any = true;
  }
  return any;
}

void LocalCluster::end(Replica& replica, int exit_code) {
  ObservedReplica& seen = replica.seen;
  const std::string name = replica_name(job_, seen.role, seen.index);
  seen.last_line = last_line_of(setting_.directory.log(name), replica.log_begin);
  seen.exit_code = exit_code;
  replica.process.reset();
  replica.kill_at.reset();
  prober_.forget(seen.uid);
  if (setting_.hosts != nullptr) {
    if (const auto why = setting_.hosts->end(name, setting_.directory.replica(name))) {
      seen.exit_code.reset();
      seen.reason = "NodeLost";
      seen.last_line = *why;
      emit(job_, {plan::Event::Kind::warning, "HostLost", name + ": " + *why});
      // Generations shut out a trainer that still lives on the lost host unseen, but not another
      // program.
      if (job_.training.is_null()) {
        replica.over_at = Clock::now() + kUnseen;
        return;
      }
    }
  }
  note_end(seen);
}

void LocalCluster::note_end(ObservedReplica& seen) {
  seen.phase = seen.exit_code == 0 ? Phase::succeeded : Phase::failed;
  seen.finished = now();
}

bool LocalCluster::end_lost() {
  bool any = false;
  for (Replica& replica : replicas_) {
    if (!replica.over_at || *replica.over_at > Clock::now()) continue;
    replica.over_at.reset();
    note_end(replica.seen);
    any = true;
  }
  return any;
}

void LocalCluster::kill_overdue() {
  for (Replica& replica : replicas_) {
    if (!replica.process || !replica.kill_at || *replica.kill_at > Clock::now()) continue;
    replica.process->signal(SIGKILL);
    replica.kill_at.reset();
    const std::string name = replica_name(job_, replica.seen.role, replica.seen.index);
    emit(job_, {plan::Event::Kind::warning, "GraceExceeded",
                name + " did not leave within " + std::to_string(replica.grace.count()) +
                    " s of SIGTERM and was killed"});
  }
}

}  // namespace muster::local
