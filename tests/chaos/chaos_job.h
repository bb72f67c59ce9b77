#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/chaos/late_mount.h"
#include "tests/chaos/relay.h"
#include "tests/integration/trainer/job.h"

namespace muster::chaos {

using Replica = integration::Job::Replica;
inline const Replica kChief{"chief", 0};
inline const Replica kEvaluator{"evaluator", 0};
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// How long a job is. Most are long enough for what is done to them to end before they do; those
// that are done something to fifty times are short, with some five checkpoints on the way.
constexpr int kLong = 18;  // epochs
constexpr int kShort = 6;
constexpr int steps_of(int epochs) {
  return 625 * epochs;
}

// How much of it: MUSTER_CHAOS_RUNS (1), MUSTER_CHAOS_PAUSE (seconds, 4: longer than the silence
// after which a peer is lost) and MUSTER_CHAOS_SEED (from the clock; it is printed).
// MUSTER_CHAOS_ALL=1: what this system does not allow fails, and is not skipped.
// MUSTER_CHAOS_HOSTILE: how many seconds an attack by a stranger lasts (until the job ends).
struct Amount {
  int runs;  // of each kind of kill; a tenth of them, but one at least, of what takes longer
  seconds pause;
  uint64_t seed;
  bool all;
  std::optional<seconds> hostile;
  int few() const { return std::max(1, runs / 10); }
  static const Amount& get();
};

// Chance of the running test's `run`: the same for the same seed, whichever other tests run.
class Chance {
 public:
  explicit Chance(int run = 0);
  double uniform(double from, double to);
  bool coin() { return uniform(0, 1) < 0.5; }
  template <class T>
  T one_of(const std::vector<T>& all) {
    return all[static_cast<size_t>(uniform(0, static_cast<double>(all.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

struct Shape {
  int epochs = kLong;
  int ps = 2;           // 0: a collective
  int replication = 1;  // copies of every shard
  int workers = 1;
  bool elastic = false;  // goes on with whoever is there
  bool evaluator = false;
  bool relayed = false;  // every address leads through a Relay, so that a replica can move
  bool faulty = false;   // the storage does what storage_does() says
  int late_seconds = 0;  // two hosts: each sees so late what the other has stored
  int hang_seconds = 0;  // a main thread that hangs is noticed after as long
  bool keep = false;     // goes on with the storage that is there
  bool grpc_only = false;
  bool plaintext = false;  // replicas believe everybody
  bool http = false;       // every replica serves /metrics and /progress
};

// A job that is looked after as an operator does: who ends without success is started again after a
// moment. All of it in the caller's thread: nobody is restarted but in run_for() and finish().
class ChaosJob {
 public:
  ChaosJob(const std::string& name, Chance& chance, const Shape& shape = {});
  ~ChaosJob();

  const std::vector<Replica>& replicas() const { return replicas_; }
  int epochs() const { return shape_.epochs; }
  std::vector<Replica> of(const std::string& role) const;

  void start();
  void run_for(double seconds);
  // True once the chief has ended with success.
  bool finished() const { return ended_.contains(kChief); }
  void signal(const Replica& replica, int number);
  // Makes its main thread, which trains, hang for ever. Precondition: the shape has hang_seconds.
  void hang(const Replica& replica);
  void signal_all(int number);
  // Nobody is started again until run_for() or finish().
  void await_all();
  // A stopped replica is left alone, and another one takes its name and place. Needs `relayed`.
  void replace(const Replica& replica);
  // The exit code of who was replaced, when it is woken.
  std::optional<int> wake_replaced();
  // Until chief and workers (and the evaluator) are done; then the ps are ended.
  void finish();
  void storage_does(const std::string& what);
  // Whether this system has the two hosts of `late_seconds`. Everybody begins on host 0.
  bool has_hosts() const;
  // The replica is on that host from its next start.
  void move(const Replica& replica, size_t host) { host_[replica] = host; }
  // The host looks at all that is stored and for all that a job may store. It then believes for
  // `late_seconds` that what it has found is there, and that nothing else is.
  void look_from(size_t host) const;

  std::filesystem::path storage() const { return job_.folder() / "storage"; }
  std::vector<std::string> checkpoints() const;
  bool wait_for_checkpoints(size_t count);
  Json result() const;
  // How often it was started.
  int starts(const Replica& replica) const { return starts_.at(replica); }
  // How many processes were seen to have been killed.
  int kills() const { return kills_; }
  // Looks after the job until its log has `text` so often; false if that took longer than a minute.
  bool wait_for_log(const Replica& replica, const std::string& text, int times = 1);
  // Of all that were started in its place.
  std::string log(const Replica& replica) const { return job_.log(replica.first, replica.second); }
  // How often its log has `text`.
  int count_in_log(const Replica& replica, const std::string& text) const;
  // All that replicas listen at.
  std::vector<int> ports() const;
  // The most that each of those that run has used, in MiB.
  std::map<Replica, long> peak_memory();
  // What was done to it and when, for a failure's message.
  std::string story() const;

 private:
  void start(const Replica& replica);
  void look_after();
  template <class Ready>
  bool look_after_until(Ready ready);
  void note(const std::string& text);
  std::map<std::string, std::string> environment(const Replica& replica);

  const Shape shape_;
  integration::Job job_;
  std::vector<Replica> replicas_;
  std::map<Replica, bool> grpc_;
  std::map<Replica, int> starts_;
  int kills_ = 0;
  std::set<Replica> killed_;                    // and not yet started again
  std::map<Replica, Clock::time_point> again_;  // when who has ended is to be started
  std::map<Replica, int> ended_;
  std::map<Replica, std::unique_ptr<Relay>> relays_;
  std::map<Replica, int> ports_;  // behind the relay
  std::map<Replica, int> http_;
  std::unique_ptr<integration::Process> replaced_;
  std::vector<std::unique_ptr<LateMount>> hosts_;
  std::map<Replica, size_t> host_;
  Clock::time_point begun_ = Clock::now();
  std::vector<std::string> story_;
};

// An undisturbed job of so many epochs, the yardstick: what it comes to and how long it takes.
struct Undisturbed {
  std::string digest;
  double seconds;
  static const Undisturbed& get(int epochs = kLong);
};

// The job ends with success, with an undisturbed one's bits and steps.
void expect_undisturbed_end(ChaosJob& job);

}  // namespace muster::chaos
