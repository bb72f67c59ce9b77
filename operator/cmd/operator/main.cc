#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/program/output.h"
#include "common/program/usage.h"
#include "common/random.h"
#include "common/system/signals.h"
#include "common/threads/heap.h"
#include "common/threads/pause.h"
#include "operator/cmd/operator/operator_process.h"
#include "operator/cmd/operator/operator_release.h"
#include "operator/kube/http/http_transport.h"
#include "operator/kube/pods/network_policy.h"

namespace muster::cmd {

namespace {

constexpr std::chrono::milliseconds kPatience(1'000);  // time for calls to end after a stop

struct Flags {
  OperatorOptions options;
  std::string kubeconfig, context;
  int in_flight = 32;
  int lease_seconds = 15;
  std::string http_peers;
  std::vector<std::string> allowed_accounts;
  std::string scale_down;  // for release-pods, like the next member
  int timeout_seconds = 120;
};

std::string own_identity() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return std::string(name) + "_" + random_digits();
}

// An empty name would mean all namespaces, or any account.
std::string is_name(const std::string& text) {
  const bool good =
      !text.empty() &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos;
  return good ? "" : "expected names of small letters, digits, - and ., found \"" + text + "\"";
}

void add_server_flags(CLI::App& app, Flags& flags) {
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "How to reach the API server; $KUBECONFIG, a pod's service account or "
                 "~/.kube/config where left out");
  app.add_option("--context", flags.context, "Context of the kubeconfig; its current one");
  app.add_option("--namespace", flags.options.namespaces,
                 "Only the jobs of these namespaces, separated by commas; default: all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(is_name, "NAME");
  app.add_option("--in-flight", flags.in_flight, "Calls of the API server at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

void add_lease_flags(CLI::App& app, Flags& flags) {
  OperatorOptions& options = flags.options;
  app.add_flag("--leader-election,!--no-leader-election", options.elects_leader,
               "Act only while holding a Lease (default); without it one process must be alone");
  app.add_option("--lease-namespace", options.lease.name_space,
                 "Namespace of the Lease; the operator's own");
  app.add_option("--lease-name", options.lease.name, "Name of the Lease")->capture_default_str();
  app.add_option("--lease-seconds", flags.lease_seconds,
                 "How long the other operators wait for a silent leader")
      ->check(CLI::Range(3, 600))
      ->capture_default_str();
}

void add_flags(CLI::App& app, Flags& flags) {
  OperatorOptions& options = flags.options;
  add_server_flags(app, flags);
  add_lease_flags(app, flags);
  app.add_option("--usage-name", options.usage_name,
                 "ConfigMap, in the Lease's namespace, that keeps what jobs have used")
      ->check(is_name, "NAME")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Jobs reconciled at the same time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--reports-per-second", options.cluster.reports_per_second,
                 "Limit for writes of progress and of replica counts, over all jobs")
      ->check(CLI::Range(0.1, 10'000.0))
      ->capture_default_str();
  app.add_option("--http-address", options.http_address,
                 "host:port of /metrics, /healthz and /readyz")
      ->capture_default_str();
  app.add_option("--trainer-image", options.cluster.pods.trainer_image,
                 "Image of replicas whose template names none")
      ->capture_default_str();
  app.add_option("--trainer-cuda-image", options.cluster.pods.trainer_cuda_image,
                 "Image of replicas that compute on GPUs (device: cuda)")
      ->capture_default_str();
  app.add_option("--trainer-pull-policy", options.cluster.pods.image_pull_policy,
                 "imagePullPolicy of both")
      ->check(CLI::IsMember({"Always", "IfNotPresent", "Never"}));
  app.add_option("--allowed-service-accounts", flags.allowed_accounts,
                 "Service accounts that templates may name, separated by commas; default: any")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(is_name, "NAME");
  app.add_option(
      "--replica-http-peers", flags.http_peers,
      "Who may ask a replica for /metrics and /progress, as a list of NetworkPolicyPeers "
      "in JSON: the operators at least. With it each job with spec.training gets a "
      "NetworkPolicy; without it none does");
  app.add_option("--tfjobs", flags.options.tfjobs.taken,
                 "Run TFJobs (kubeflow.org/v1) too: `marked` ones, with spec.runPolicy.managedBy "
                 "muster.dev/operator, or `all`, also those of the training-operator, which must "
                 "not run then; their CustomResourceDefinition must be there")
      ->transform(CLI::CheckedTransformer(std::map<std::string, kube::TakenTfJobs>{
          {"marked", kube::TakenTfJobs::marked}, {"all", kube::TakenTfJobs::all}}));
  app.add_option("--tfjob-gang-scheduler", flags.options.tfjobs.gang_scheduler,
                 "Gang scheduler that places the replicas of TFJobs made from then on; without "
                 "it their schedulingPolicy has no meaning")
      ->check(CLI::IsMember({"volcano", "scheduler-plugins"}));
  app.add_flag("--kueue", options.kueue,
               "Let jobs with the label kueue.x-k8s.io/queue-name wait in that queue of Kueue, "
               "whose CustomResourceDefinitions (v1beta2) must be there");
  app.add_option("--cluster-domain", options.cluster.pods.cluster_domain,
                 "Domain of the cluster, as cluster.local, put to replicas' addresses");
}

const CLI::App& add_release_command(CLI::App& app, Flags& flags) {
  CLI::App& release = *app.add_subcommand(
      "release-pods",
      "Takes the finalizer off the pods of all jobs, so that they can be deleted when no operator "
      "is there any more; ends with 69 where some are left");
  add_server_flags(release, flags);
  add_lease_flags(release, flags);
  release
      .add_option("--scale-down", flags.scale_down,
                  "Deployment of the operators, which is scaled down first")
      ->type_name("NAMESPACE/NAME")
      ->check([](const std::string& text) -> std::string {
        const size_t slash = text.find('/');
        const bool good = slash != 0 && slash < text.size() - 1 && slash == text.rfind('/');
        return good ? "" : "expected NAMESPACE/NAME, found \"" + text + "\"";
      });
  release.add_option("--timeout-seconds", flags.timeout_seconds, "How long to try")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  return release;
}

void complete_lease(Flags& flags, const kube::Config& config) {
  kube::LeaseSettings& lease = flags.options.lease;
  if (lease.name_space.empty()) lease.name_space = config.name_space;
  lease.identity = own_identity();
  lease.duration = std::chrono::seconds(flags.lease_seconds);
  lease.renew_within = lease.duration * 2 / 3;
  lease.every = lease.duration / 7;
}

// Turns SIGTERM and SIGINT, which all threads have blocked, into a stop. Calls under way may still
// end, but a server that does not answer must not prevent the process from giving up the lease.
void await_signal(const std::stop_token& end, std::stop_source& stop, kube::HttpTransport& calls) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  const timespec glance{0, 100'000'000};
  while (!end.stop_requested()) {
    if (sigtimedwait(&signals, nullptr, &glance) <= 0) continue;
    stop.request_stop();
    if (pause_for(kPatience, end)) calls.shut_down();
  }
}

void block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int operate(OperatorProcess::Transports transports, prometheus::Registry& registry,
            const Flags& flags, const std::stop_token& stop) {
  OperatorProcess process(transports, registry, flags.options);
  return process.run(stop) ? kSuccess : kUnavailable;
}

int release(OperatorProcess::Transports transports, const Flags& flags,
            const std::stop_token& stop) {
  const size_t slash = flags.scale_down.find('/');
  ReleaseOptions options;
  options.namespaces = flags.options.namespaces;
  if (slash != std::string::npos) {
    options.deployment = {flags.scale_down.substr(0, slash), flags.scale_down.substr(slash + 1)};
  }
  options.elects_leader = flags.options.elects_leader;
  options.lease = flags.options.lease;
  options.at_a_time = flags.in_flight;
  options.timeout = std::chrono::seconds(flags.timeout_seconds);
  release_pods(transports.calls, transports.lease, options, stop);
  return kSuccess;
}

int connect(Flags flags, bool releases) {
  if (!flags.http_peers.empty())
    flags.options.cluster.http_peers = kube::to_http_peers(flags.http_peers);
  flags.options.cluster.pods.allowed_accounts.insert(flags.allowed_accounts.begin(),
                                                     flags.allowed_accounts.end());
  const kube::Config config = kube::find_config(flags.kubeconfig, flags.context);
  complete_lease(flags, config);
  kube::Credentials credentials(config);
  prometheus::Registry registry;
  kube::HttpTransport::Settings settings;
  settings.in_flight = flags.in_flight;
  kube::HttpTransport calls(credentials, registry, settings);
  settings.in_flight = 1;
  kube::HttpTransport lease(credentials, registry, settings);
  std::stop_source stop;
  const std::jthread signals([&](const std::stop_token& end) { await_signal(end, stop, calls); });
  log::info("the API server is " + config.server);
  if (releases) return release({calls, lease}, flags, stop.get_token());
  return operate({calls, lease}, registry, flags, stop.get_token());
}

int run(int argc, char** argv) {
  Flags flags;
  flags.options.http_address = "[::]:8080";
  flags.options.cluster.pods.trainer_image = "muster-trainer:" MUSTER_VERSION;
  flags.options.cluster.pods.trainer_cuda_image = "muster-trainer-cuda:" MUSTER_VERSION;
  CLI::App app("Runs TrainingJobs on Kubernetes.", "muster-operator");
  app.set_version_flag("--version", "muster-operator " MUSTER_VERSION);
  add_flags(app, flags);
  const CLI::App& release_command = add_release_command(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const std::string unknown = unknown_word(app); !unknown.empty()) {
      std::fprintf(stderr, "muster-operator: %s\n", unknown.c_str());
      return kUsage;
    }
    return app.exit(error) == 0 ? kSuccess : kUsage;
  }
  log::initialize("muster-operator");
  try {
    return connect(std::move(flags), release_command.parsed());
  } catch (const Invalid& error) {
    log::error(error.what());
    return error.exit_code();
  } catch (const Unavailable& error) {
    log::error(error.what());
    return kUnavailable;
  }
}

}  // namespace

}  // namespace muster::cmd

int main(int argc, char** argv) {
  muster::occupy_standard_descriptors();
  muster::survive_large_writes();
  muster::give_back_freed_memory();
  muster::cmd::block_signals();
  muster::kube::initialize_transport();
  return muster::cmd::run(argc, argv);
}
