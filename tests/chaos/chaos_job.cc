#include "tests/chaos/chaos_job.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <thread>

#include "common/documents/json.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/slowdown.h"
#include "tests/unit/common/net/listener.h"

namespace muster::chaos {

namespace fs = std::filesystem;

namespace {

constexpr milliseconds kGlance{5};
constexpr milliseconds kRestart{100};  // an operator's first delay
constexpr milliseconds kLongestRestart{1000};
constexpr seconds kPatience{240 * kSlowdown};

uint64_t number_in(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string name_of(const Replica& replica) {
  return replica.first + "-" + std::to_string(replica.second);
}

std::string training(int epochs) {
  return integration::small_training(
      "checkpoint: {everySteps: 750, keep: 1000}\noptimizer: {name: adam, learningRate: 0.001}\n",
      epochs);
}

int port_of(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

}  // namespace

const Amount& Amount::get() {
  static const Amount amount = [] {
    const auto now = Clock::now().time_since_epoch().count();
    Amount wanted{static_cast<int>(number_in("MUSTER_CHAOS_RUNS", 1)),
                  seconds(number_in("MUSTER_CHAOS_PAUSE", 4)),
                  number_in("MUSTER_CHAOS_SEED", static_cast<uint64_t>(now) % 1'000'000),
                  number_in("MUSTER_CHAOS_ALL", 0) != 0, std::nullopt};
    if (const uint64_t hostile = number_in("MUSTER_CHAOS_HOSTILE", 0); hostile > 0)
      wanted.hostile = seconds(hostile);
    std::cout << "chaos: MUSTER_CHAOS_SEED=" << wanted.seed << " MUSTER_CHAOS_RUNS=" << wanted.runs
              << " MUSTER_CHAOS_PAUSE=" << wanted.pause.count() << std::endl;
    return wanted;
  }();
  return amount;
}

Chance::Chance(int run) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string text = std::string(test->test_suite_name()) + test->name();
  std::seed_seq seed(text.begin(), text.end());
  std::vector<uint32_t> words(2);
  seed.generate(words.begin(), words.end());
  std::seed_seq all{static_cast<uint32_t>(Amount::get().seed), words[0], words[1],
                    static_cast<uint32_t>(run)};
  engine_.seed(all);
}

double Chance::uniform(double from, double to) {
  return from + (to - from) * static_cast<double>(engine_() >> 11) * 0x1p-53;
}

ChaosJob::ChaosJob(const std::string& name, Chance& chance, const Shape& shape)
    : shape_(shape),
      job_(name, training(shape.epochs), shape.ps, shape.workers, shape.evaluator, shape.keep) {
  for (int i = 0; i < shape.ps; ++i) replicas_.push_back({"ps", i});
  replicas_.push_back(kChief);
  for (int i = 0; i < shape.workers; ++i) replicas_.push_back({"worker", i});
  if (shape.evaluator) replicas_.push_back(kEvaluator);
  for (const Replica& replica : replicas_)
    grpc_[replica] = shape.grpc_only || chance.uniform(0, 1) < 0.25;
  for (const Replica& replica : replicas_)
    if (shape.http) http_[replica] = free_port();
  fs::create_directories(storage());
  for (const char* host : {"host-0", "host-1"})
    if (shape.late_seconds > 0)
      hosts_.push_back(std::make_unique<LateMount>(storage(), job_.folder() / host,
                                                   seconds(shape.late_seconds)));
  for (auto& [role, addresses] : job_.cluster.items()) {
    if (!shape.relayed) break;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const Replica replica{role, static_cast<int>(i)};
      ports_[replica] = port_of(addresses[i]);
      relays_[replica] = std::make_unique<Relay>(ports_[replica]);
      addresses[i] = "127.0.0.1:" + std::to_string(relays_[replica]->port());
    }
  }
}

// Stopped ones too.
ChaosJob::~ChaosJob() {
  signal_all(SIGKILL);
}

std::vector<Replica> ChaosJob::of(const std::string& role) const {
  std::vector<Replica> found;
  for (const Replica& replica : replicas_)
    if (replica.first == role) found.push_back(replica);
  return found;
}

void ChaosJob::note(const std::string& text) {
  const double at = std::chrono::duration<double>(Clock::now() - begun_).count();
  std::ostringstream line;
  line << at << " s: " << text;
  story_.push_back(line.str());
}

std::string ChaosJob::story() const {
  std::string text = "in " + job_.folder().string() +
                     ", MUSTER_CHAOS_SEED=" + std::to_string(Amount::get().seed) + ":\n";
  for (const std::string& line : story_) text += "  " + line + "\n";
  return text;
}

std::map<std::string, std::string> ChaosJob::environment(const Replica& replica) {
  std::map<std::string, std::string> result = {
      {"MUSTER_STORAGE", storage().string()},
      {"MUSTER_SHARED_MEMORY", grpc_[replica] ? "0" : "1"},
      {"MUSTER_GRACE_SECONDS", "30"},
      {"MUSTER_REPLICATION", std::to_string(shape_.replication)}};
  if (shape_.elastic)
    result["MUSTER_ELASTIC"] = Json{{"minReplicas", 0}, {"maxReplicas", shape_.workers}}.dump();
  if (shape_.plaintext) result["MUSTER_TLS"] = "";
  if (!hosts_.empty()) result["MUSTER_STORAGE"] = hosts_.at(host_[replica])->path().string();
  if (shape_.http) result["MUSTER_HTTP_ADDRESS"] = "127.0.0.1:" + std::to_string(http_.at(replica));
  std::string preload;
  if (shape_.hang_seconds > 0) {
    preload = MUSTER_HANGING_THREAD;
    result["MUSTER_HANG_SECONDS"] = std::to_string(shape_.hang_seconds);
  }
  if (shape_.faulty) {
    preload += std::string(preload.empty() ? "" : ":") + MUSTER_STORAGE_FAULTS;
    result["MUSTER_FAULTS"] = (job_.folder() / "faults").string();
    result["MUSTER_FAULTS_BELOW"] = storage().string();
  }
  if (!preload.empty()) {
    result["LD_PRELOAD"] = preload;
    // The sanitizer's library need not be the first.
    result["ASAN_OPTIONS"] = "verify_asan_link_order=0";
  }
  if (!shape_.relayed || !ports_.contains(replica)) return result;
  Json cluster = job_.cluster;  // itself it knows by where it listens
  cluster[replica.first][static_cast<size_t>(replica.second)] =
      "127.0.0.1:" + std::to_string(ports_[replica]);
  result["TF_CONFIG"] =
      Json{{"cluster", cluster}, {"task", {{"type", replica.first}, {"index", replica.second}}}}
          .dump();
  return result;
}

void ChaosJob::start(const Replica& replica) {
  note("start " + name_of(replica));
  ++starts_[replica];
  killed_.erase(replica);
  job_.start(replica.first, replica.second, environment(replica));
}

void ChaosJob::start() {
  begun_ = Clock::now();
  for (const Replica& replica : replicas_) start(replica);
}

void ChaosJob::look_after() {
  for (const Replica& replica : replicas_) {
    integration::Process& process = job_.at(replica.first, replica.second);
    if (ended_.contains(replica) || process.running()) continue;
    const auto again = again_.find(replica);
    if (again != again_.end()) {
      if (Clock::now() < again->second) continue;
      again_.erase(again);
      start(replica);
      continue;
    }
    const int code = *process.wait();
    note(name_of(replica) + " ended with " + std::to_string(code));
    kills_ += code == 128 + SIGKILL;
    if (code == 0)
      ended_[replica] = code;
    else if (is_permanent(code))
      throw std::runtime_error(name_of(replica) + " gave up with " + std::to_string(code) + "\n" +
                               log(replica) + "\n" + story());
    else
      again_[replica] =
          Clock::now() +
          std::min(kLongestRestart, kRestart * (1 << std::min(starts_[replica] - 1, 10)));
  }
}

void ChaosJob::run_for(double seconds) {
  const auto until = Clock::now() + std::chrono::duration_cast<milliseconds>(
                                        std::chrono::duration<double>(seconds));
  do {
    look_after();
    std::this_thread::sleep_for(kGlance);
  } while (Clock::now() < until);
}

void ChaosJob::signal(const Replica& replica, int number) {
  if (ended_.contains(replica)) return;
  note("signal " + std::to_string(number) + " to " + name_of(replica));
  if (number == SIGKILL) killed_.insert(replica);
  job_.at(replica.first, replica.second).signal(number);
}

// A signal to the process may be taken by another thread if the main one is just about to take one.
void ChaosJob::hang(const Replica& replica) {
  note("the main thread of " + name_of(replica) + " hangs");
  const int pid = job_.at(replica.first, replica.second).pid();
  if (tgkill(pid, pid, SIGUSR2) != 0) throw std::runtime_error("no process to hang");
}

void ChaosJob::signal_all(int number) {
  for (const Replica& replica : replicas_)
    if (starts_.contains(replica)) signal(replica, number);
}

void ChaosJob::await_all() {
  for (const Replica& replica : replicas_) {
    const auto code = job_.at(replica.first, replica.second).wait();
    note(name_of(replica) + " ended with " + (code ? std::to_string(*code) : "nothing"));
    EXPECT_TRUE(code.has_value()) << story();
    if (code == 0 && replica.first != "ps") ended_[replica] = 0;
  }
}

void ChaosJob::replace(const Replica& replica) {
  note("replace " + name_of(replica));
  replaced_ = job_.release(replica.first, replica.second);
  if (ports_.contains(replica)) {
    ports_[replica] = free_port();
    relays_.at(replica)->lead_to(ports_[replica]);
  }
  start(replica);
}

std::optional<int> ChaosJob::wake_replaced() {
  note("wake who was replaced");
  replaced_->signal(SIGCONT);
  const auto until = Clock::now() + seconds(60 * kSlowdown);
  while (replaced_->running() && Clock::now() < until) {
    look_after();
    std::this_thread::sleep_for(kGlance);
  }
  return replaced_->running() ? std::nullopt : replaced_->wait();
}

void ChaosJob::finish() {
  const auto until = Clock::now() + kPatience;
  const auto done = [&] {
    for (const Replica& replica : replicas_)
      if (replica.first != "ps" && !ended_.contains(replica)) return false;
    return true;
  };
  while (!done()) {
    if (Clock::now() > until) {
      std::string logs;
      for (const Replica& replica : replicas_) logs += name_of(replica) + ":\n" + log(replica);
      throw std::runtime_error("did not end within " + std::to_string(kPatience.count()) + " s\n" +
                               logs + story());
    }
    look_after();
    std::this_thread::sleep_for(kGlance);
  }
  for (const Replica& replica : of("ps")) {
    integration::Process& process = job_.at("ps", replica.second);
    if (!process.running()) continue;  // waiting to be started again
    signal(replica, SIGTERM);
    // The job has finished, so a parameter server that is asked to stop has done its work.
    const int expected = killed_.contains(replica) ? 128 + SIGKILL : 0;
    EXPECT_EQ(process.wait(seconds(60 * kSlowdown)), expected) << log(replica) << story();
  }
}

// By a rename, so that nobody reads half of it.
void ChaosJob::storage_does(const std::string& what) {
  note("the storage: " + (what.empty() ? "as it should be" : what));
  write_file_atomically(job_.folder() / "faults", what);
}

bool ChaosJob::has_hosts() const {
  return !hosts_.empty() &&
         std::ranges::all_of(hosts_, [](const auto& host) { return host->mounted(); });
}

void ChaosJob::look_from(size_t host) const {
  const fs::path& mount = hosts_.at(host)->path();
  std::error_code ignored;
  for (const char* name : {"owner.json", "lease", "generations", "checkpoints", "evaluations",
                           "rendezvous.json", "result.json", "model", "events"})
    static_cast<void>(fs::exists(mount / name, ignored));
  for (fs::recursive_directory_iterator at(mount, ignored), end; at != end; at.increment(ignored))
    static_cast<void>(fs::file_size(at->path(), ignored));
}

std::vector<int> ChaosJob::ports() const {
  std::vector<int> all;
  for (const auto& [replica, port] : http_) all.push_back(port);
  for (const char* role : {"ps", "chief"})
    for (const Json& address : member(job_.cluster, role)) all.push_back(port_of(address));
  return all;
}

std::map<Replica, long> ChaosJob::peak_memory() {
  std::map<Replica, long> peaks;
  for (const Replica& replica : replicas_)
    if (starts_.contains(replica))
      peaks[replica] = job_.at(replica.first, replica.second).peak_memory();
  return peaks;
}

std::vector<std::string> ChaosJob::checkpoints() const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(storage() / "checkpoints", error), end; entry != end;
       entry.increment(error)) {
    if (error) break;
    const std::string name = entry->path().filename();
    if (name.starts_with("ckpt-") && name.find(".tmp") == std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

template <class Ready>
bool ChaosJob::look_after_until(Ready ready) {
  const auto until = Clock::now() + seconds(60 * kSlowdown);
  while (!ready()) {
    if (Clock::now() > until) return false;
    look_after();
    std::this_thread::sleep_for(kGlance);
  }
  return true;
}

bool ChaosJob::wait_for_checkpoints(size_t count) {
  return look_after_until([&] { return checkpoints().size() >= count; });
}

bool ChaosJob::wait_for_log(const Replica& replica, const std::string& text, int times) {
  return look_after_until([&] { return count_in_log(replica, text) >= times; });
}

int ChaosJob::count_in_log(const Replica& replica, const std::string& text) const {
  const std::string all = log(replica);
  int count = 0;
  for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++count;
  return count;
}

Json ChaosJob::result() const {
  return Document::load(storage() / "result.json").value();
}

const Undisturbed& Undisturbed::get(int epochs) {
  static std::map<int, Undisturbed> yardsticks;
  const auto [found, is_new] = yardsticks.try_emplace(epochs);
  if (is_new) {
    Chance chance;
    Shape shape;
    shape.epochs = epochs;
    ChaosJob job("undisturbed", chance, shape);
    const auto begun = Clock::now();
    job.start();
    job.finish();
    const double took = std::chrono::duration<double>(Clock::now() - begun).count();
    const Json result = job.result();
    EXPECT_EQ(result["step"], steps_of(epochs));
    found->second = {result["weightsDigest"].get<std::string>(), took};
  }
  return found->second;
}

void expect_undisturbed_end(ChaosJob& job) {
  ASSERT_NO_THROW(job.finish());
  const Json result = job.result();
  EXPECT_EQ(result["weightsDigest"], Undisturbed::get(job.epochs()).digest) << job.story();
  EXPECT_EQ(result["step"], steps_of(job.epochs())) << job.story();
}

}  // namespace muster::chaos
