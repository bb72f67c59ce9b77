#pragma once

#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "operator/plan/values.h"

namespace muster::plan {

// Chance, the same for the same seed.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  bool percent(int p) { return below(100) < p; }
  template <class List>
  auto& pick(List& list) {
    return list[static_cast<size_t>(below(static_cast<int>(std::size(list))))];
  }

 private:
  std::mt19937_64 engine_;
};

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

bool lives(const ObservedReplica& replica);

// The world as it is: the stored job, its replicas, what each has done, and how it looked lately.
// Replicas are named by (role, index, attempt); a name is free again only once its replica is gone.
class SimulatedWorld {
 public:
  explicit SimulatedWorld(const api::TrainingJob& the_job) : job(the_job) { remember(); }

  api::TrainingJob job;  // as stored, with the status last written
  Time now{std::chrono::hours(24 * 365 * 50)};

  const std::vector<ObservedReplica>& replicas() const { return replicas_; }

  // What a controller asks for. Creating a name that exists changes nothing. A replica that lives
  // is asked to leave; one that has ended goes if the status has counted it, else as soon as it
  // has.
  void create(const CreateReplica& creation);
  void remove(const RemoveReplica& removal);

  // What happens by itself.
  void start(const std::string& uid);
  void end(const std::string& uid, int code, const std::string& reason = "");
  void restart_in_place(const std::string& uid, int code);
  void crash_loop(const std::string& uid);
  void ask_to_leave(const std::string& uid);
  void vanish(const std::string& uid);  // by force, its end uncounted
  void collect();                       // deleted, ended and counted: gone
  // cut_off: its node is not heard of, and it is reported as lost while it lives on. heal: its node
  // is heard of again, and it is seen as it is, asked to leave or not.
  void cut_off(const std::string& uid);
  void heal(const std::string& uid);
  bool is_cut_off(const std::string& uid) const { return cut_off_.contains(uid); }
  bool was_cut_off(const std::string& uid) const { return was_cut_off_.contains(uid); }

  // Views. A moment is a past state of the replicas; the newest is now.
  int newest_moment() const { return first_moment_ + static_cast<int>(moments_.size()) - 1; }
  int oldest_moment() const { return first_moment_; }
  int last_creation() const { return last_creation_; }
  Observed view_of(int moment) const;
  // Each replica as it was at some moment of its own, not before `oldest`.
  Observed mixed_view(int oldest, Dice& dice) const;

 private:
  ObservedReplica* find(const std::string& uid);
  void remember();

  std::vector<ObservedReplica> replicas_;
  std::map<std::string, ObservedReplica> cut_off_;  // as they are, by UID
  std::set<std::string> was_cut_off_;
  std::deque<std::vector<ObservedReplica>> moments_;
  int first_moment_ = 0, last_creation_ = 0, created_ = 0;
};

}  // namespace muster::plan
