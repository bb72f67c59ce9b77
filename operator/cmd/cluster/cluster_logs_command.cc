#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "common/exit_code.h"
#include "common/program/output.h"
#include "operator/api/overview.h"
#include "operator/cmd/cluster/cluster_commands.h"
#include "operator/cmd/cluster/cluster_logs.h"
#include "operator/cmd/show/log_merge.h"
#include "operator/cmd/show/log_printer.h"
#include "operator/kube/pods/observe.h"
#include "operator/plan/describe.h"
#include "operator/plan/retry.h"

namespace muster::cmd {

namespace {

// Longest wait for a node that does not answer.
constexpr std::chrono::milliseconds kPatience{5000};
constexpr std::chrono::milliseconds kPrintEvery{200};

struct Seen {
  api::TrainingJob job;
  std::vector<kube::Pod> pods;  // pods of the requested replicas
};

bool is_wanted(const std::vector<std::string>& wanted, const std::string& replica) {
  if (wanted.empty()) return true;
  return std::ranges::any_of(wanted, [&](const std::string& one) { return means(one, replica); });
}

// Returns the replicas of the job, including replicas that were scaled away and still have pods.
std::set<std::string> known_names(const Seen& seen) {
  std::set<std::string> names;
  for (const auto& [role, spec] : seen.job.replicas) {
    for (int i = 0; i < spec.replicas; ++i) names.insert(plan::describe(seen.job, role, i));
  }
  for (const kube::Pod& pod : seen.pods) names.insert(replica_of(seen.job, pod));
  names.erase("");
  return names;
}

void require_known(const Seen& seen, const std::vector<std::string>& asked) {
  const std::set<std::string> known = known_names(seen);
  for (const std::string& name : asked) {
    const bool found =
        std::ranges::any_of(known, [&](const std::string& one) { return means(name, one); });
    if (found) continue;
    throw Invalid(fmt::format("{}: expected one of: {}; or one of their roles; found \"{}\"",
                              seen.job.name, fmt::join(known, ", "), name));
  }
}

Seen look(const ClusterAccess& cluster, const ClusterLogOptions& options) {
  Seen seen{to_job(cluster.job(options.job)), {}};
  seen.pods = cluster.pods_of(seen.job);
  require_known(seen, options.replicas);
  std::erase_if(seen.pods, [&](const kube::Pod& pod) {
    const std::string name = replica_of(seen.job, pod);
    return name.empty() || !is_wanted(options.replicas, name);
  });
  return seen;
}

LogPrinter printer_for(const Seen& seen, const ClusterLogOptions& options) {
  std::set<std::string> names = known_names(seen);
  std::erase_if(names, [&](const std::string& name) { return !is_wanted(options.replicas, name); });
  LogPrinter printer(options.json, takes_colour(stdout));
  printer.know(names);
  return printer;
}

void print_lines(const LogPrinter& printer, const std::vector<ReplicaLine>& lines) {
  constexpr int64_t kSecond = 1'000'000'000;
  for (const auto& [replica, line] : lines) {
    const auto seconds = line.time == 0 ? std::nullopt : std::optional(line.time / kSecond);
    print(stdout, "{}\n", printer.line(replica, line.text, seconds));
  }
  std::fflush(stdout);
}

// Returns why there is no log, for example "Pending; worker-0: Unschedulable".
std::string why_nothing(const Seen& seen) {
  std::string text = api::state_word(seen.job.status);
  for (const kube::Pod& pod : seen.pods) {
    const std::optional<plan::ObservedReplica> replica = kube::observe(pod);
    if (!replica || replica->reason.empty()) continue;
    text += "; " + replica_of(seen.job, pod) + ": " + replica->reason;
  }
  return text;
}

int show_now(const ClusterAccess& cluster, const ClusterLogOptions& options) {
  const Seen seen = look(cluster, options);
  std::vector<ReplicaLine> lines;
  bool any = false;
  int code = kSuccess;
  for (const kube::Pod& pod : seen.pods) {
    if (!has_log(pod)) continue;
    any = true;
    try {
      PodLog(cluster.transport(), pod).read(options.tail, [&](const PodLogLine& line) {
        lines.push_back({replica_of(seen.job, pod), line});
      });
    } catch (const Unavailable& error) {  // its node may be dead while other nodes work
      print(stderr, "muster: the log of {} cannot be read: {}\n", replica_of(seen.job, pod),
            error.what());
      code = kUnavailable;
    }
  }
  if (!any) {
    throw Unavailable(fmt::format(
        "{}: expected a replica that has started, found none ({}); --follow waits for one",
        object_name(options.job), why_nothing(seen)));
  }
  sort_by_time(lines);
  const LogPrinter printer = printer_for(seen, options);
  print_lines(printer, lines);
  return code;
}

bool replica_has_ended(const kube::Pod& pod) {
  const std::optional<plan::ObservedReplica> replica = kube::observe(pod);
  return replica && !is_live(*replica);
}

// Shows why there is nothing to show: once, and again when the reason changes.
class Waiting {
 public:
  void tell(const api::TrainingJob& job, const std::string& why) {
    if (why == told_) return;
    print(stderr, "muster: {}: waiting: {}\n", job.name, why);
    told_ = why;
  }

 private:
  std::string told_;
};

int follow(const ClusterAccess& cluster, const ClusterLogOptions& options) {
  Seen seen = look(cluster, options);
  const std::string uid = seen.job.uid;
  const LogPrinter printer = printer_for(seen, options);
  LogFollowers followers(cluster.transport(), options.tail, options.every);
  const auto show_for = [&](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    do {
      print_lines(printer, followers.take(kPatience));
      std::this_thread::sleep_for(std::min(time, kPrintEvery));
    } while (std::chrono::steady_clock::now() < end);
  };
  Waiting waiting;
  for (;;) {
    std::set<std::string> uids;
    for (const kube::Pod& pod : seen.pods) {
      uids.insert(pod.meta.uid);
      if (has_log(pod)) followers.see(replica_of(seen.job, pod), pod, replica_has_ended(pod));
    }
    followers.keep(uids);
    if (plan::stays_finished(seen.job) || std::ferror(stdout) != 0) break;
    if (followers.empty()) waiting.tell(seen.job, why_nothing(seen));
    show_for(options.every);
    try {
      const std::optional<Json> object =
          cluster.client().get(kube::training_jobs(), {cluster.name_space(), options.job});
      if (!object || to_job(*object).uid != uid) break;  // deleted
      seen = look(cluster, options);
    } catch (const kube::ApiUnavailable& error) {
      if (!may_pass(error.status())) throw;
      waiting.tell(seen.job, cluster.explain(error.status(), error.what()));
    }
  }
  followers.finish();
  print_lines(printer, followers.take(kPatience));
  return kSuccess;
}

}  // namespace

int show_cluster_logs(const ClusterAccess& cluster, const ClusterLogOptions& options) {
  return options.follow ? follow(cluster, options) : show_now(cluster, options);
}

}  // namespace muster::cmd
