#include "operator/cmd/operator/operator_process.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "common/program/log.h"
#include "common/program/process_metrics.h"
#include "common/threads/pause.h"
#include "operator/api/status.h"
#include "operator/cmd/operator/job_metrics.h"
#include "operator/kube/cluster/definition_version.h"
#include "operator/kube/pods/names.h"

namespace muster::cmd {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollers = 4;
constexpr std::chrono::milliseconds kBetweenFinished{1};
// Longest time until a worker looks for work again.
constexpr std::chrono::milliseconds kIdle{1000};
constexpr std::chrono::minutes kBetweenDefinitions{5};
constexpr const char* kComponent = "muster-operator";

void report_trouble(const controller::Controller::Trouble& trouble) {
  log::warning(trouble.key + ": " + trouble.message,
               {{"job", trouble.key}, {"failures", trouble.failures}});
}

bool are_synced(const std::vector<const kube::Reflector*>& reflectors) {
  return std::ranges::all_of(reflectors, [](const auto* one) { return one->synced(); });
}

}  // namespace

uint64_t WorkSignal::count() const {
  const MutexLock lock(mutex_);
  return count_;
}

void WorkSignal::raise() {
  const MutexLock lock(mutex_);
  ++count_;
  changed_.notify_one();
}

void WorkSignal::wait(uint64_t seen, std::chrono::milliseconds most, const std::stop_token& stop) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, stop, most, [&]() MUSTER_REQUIRES(mutex_) { return count_ > seen; });
}

OperatorProcess::OperatorProcess(Transports transports, prometheus::Registry& registry,
                                 OperatorOptions options)
    : options_(std::move(options)),
      registry_(registry),
      transport_(transports.calls),
      metrics_(registry),
      election_(transports.lease, options_.lease,
                [this](bool leads) {
                  metrics_.set_leading(leads);
                  log::info(leads ? "this process leads" : "the lease is lost");
                  if (!leads) lost_.request_stop();
                  work_.raise();
                }),
      events_(transport_, kComponent),
      cluster_(transport_, options_.cluster, environment()),
      queued_(cluster_, transport_, cluster_.jobs(), options_.cluster.pods, options_.kueue,
              environment(), [this] { return are_synced(of_queues_); }),
      controller_(queued_, report_trouble, {}, &metrics_),
      tfjobs_(transport_, cluster_.jobs(), options_.tfjobs, environment_of_tfjobs(),
              [this](kube::TfJobReconciler::Count count, const std::string& name_space) {
                metrics_.count_tfjob(count, name_space);
              }),
      tfjob_controller_([this](const std::string& key) { return tfjobs_.reconcile(key); },
                        api::wall_time, report_trouble) {
  watch(cluster_.jobs(), kube::training_jobs(), "", &needed_);
  // Other jobs must run even if the definitions of TFJobs and queues are missing.
  if (options_.tfjobs.taken != kube::TakenTfJobs::none)
    watch(tfjobs_.tfjobs(), kube::tfjobs(), "", nullptr);
  if (options_.kueue) watch_queues();
  watch(cluster_.pods(), kube::pods(), kube::kJobLabel, &needed_);
  watch(cluster_.services(), kube::services(), kube::kJobLabel, &needed_);
  serve();
}

OperatorProcess::~OperatorProcess() = default;

kube::Environment OperatorProcess::environment() {
  kube::Environment environment;
  environment.now = api::wall_time;
  environment.wake = [this](const std::string& key, api::Time at) {
    if (!acts_) return;
    controller_.wake(key, at);
    work_.raise();
  };
  environment.emit = [this](const kube::EventSubject& subject, const kube::EventText& text) {
    events_.emit(subject, text);
  };
  environment.leads = [this] { return !options_.elects_leader || election_.leads(); };
  environment.job_changed = [this](const std::string& key) {
    if (acts_) tfjobs_.training_job_changed(key);
  };
  environment.watcher = &metrics_;
  return environment;
}

kube::Environment OperatorProcess::environment_of_tfjobs() {
  kube::Environment environment = this->environment();
  environment.wake = [this](const std::string& key, api::Time at) {
    if (!acts_) return;
    tfjob_controller_.wake(key, at);
    tfjob_work_.raise();
  };
  return environment;
}

// Fills the store by one reflector for each namespace, so that no rights in other namespaces are
// needed.
template <class T>
void OperatorProcess::watch(kube::Store<T>& store, const kube::Resource& resource,
                            const std::string& label_selector, Reflectors* group) {
  kube::Reflector::Settings settings;
  settings.resource = resource;
  settings.label_selector = label_selector;
  if (options_.namespaces.empty()) return add_reflector(store, settings, group);
  for (const std::string& name_space : options_.namespaces) {
    settings.name_space = name_space;
    parts_.push_back(store.part(name_space));
    add_reflector(*parts_.back(), settings, group);
  }
}

// ResourceFlavors are in no namespace.
void OperatorProcess::watch_queues() {
  watch(queued_.workloads(), kube::workloads(), kube::kJobLabel, &of_queues_);
  kube::Reflector::Settings settings;
  settings.resource = kube::resource_flavors();
  add_reflector(queued_.flavors(), settings, &of_queues_);
}

void OperatorProcess::add_reflector(kube::Mirror& mirror, kube::Reflector::Settings settings,
                                    Reflectors* group) {
  const auto report = [](const std::string& trouble, std::chrono::milliseconds pause) {
    log::warning(trouble, {{"retryInMs", pause.count()}});
  };
  reflectors_.push_back(
      std::make_unique<kube::Reflector>(transport_, mirror, std::move(settings), report));
  if (group != nullptr) group->push_back(reflectors_.back().get());
}

void OperatorProcess::serve() {
  if (options_.http_address.empty()) return;
  http_.emplace(options_.http_address);
  http_->handle("/metrics", [this] {
    return HttpReply{200, "text/plain; version=0.0.4; charset=utf-8", metrics_text()};
  });
  http_->handle("/healthz", [] { return HttpReply{200, "text/plain; charset=utf-8", "ok\n"}; });
  http_->handle("/readyz", [this] {
    if (ready()) return HttpReply{200, "text/plain; charset=utf-8", "ok\n"};
    return HttpReply{503, "text/plain; charset=utf-8", "the first lists are not complete\n"};
  });
  http_->start();
}

std::string OperatorProcess::metrics_text() {
  metrics_.update(controller_.waiting(), ready());
  std::ostringstream out;
  const std::vector<prometheus::MetricFamily> build = {
      build_info("muster-operator", MUSTER_VERSION)};
  for (const auto& families : {registry_.Collect(), process_metrics(), build})
    prometheus::TextSerializer().Serialize(out, families);
  // Only of the leader, so that sums over all operators count each job once.
  if (acts_) {
    controller_.ledgers().count_until(cluster_.now(), Clock::now());
    write_job_metrics(out, cluster_.job_states(), controller_.ledgers(), tfjobs_.refused(),
                      cluster_.now());
  }
  return std::move(out).str();
}

bool OperatorProcess::ready() const {
  return are_synced(needed_);
}

bool OperatorProcess::wait_to_lead(const std::stop_token& stop) {
  for (const auto* reflector : needed_) {
    if (!reflector->wait_synced(stop)) return false;
  }
  while (!stop.stop_requested()) {
    const uint64_t seen = work_.count();
    if (!options_.elects_leader || election_.leads()) return true;
    work_.wait(seen, kIdle, stop);
  }
  return false;
}

// Wakes all jobs in view, because the view contains earlier changes; from now on each change wakes
// its job.
void OperatorProcess::begin_to_act() {
  if (!options_.elects_leader) metrics_.set_leading(true);
  const api::Time begin = cluster_.now();
  const std::optional<kube::LeaseRecord> taken = election_.taken();
  const auto looked_until = taken ? std::optional(taken->renewed) : std::nullopt;
  controller_.ledgers().count_from(begin, looked_until);
  if (options_.elects_leader) metrics_.set_lease_transitions(taken ? taken->transitions + 1 : 0);
  usage_.emplace(transport_, environment().leads,
                 kube::ObjectName{options_.lease.name_space, options_.usage_name}, cluster_.jobs(),
                 kube::UsageRecord::Counting{
                     begin, [this] { return controller_.ledgers().by_namespace(Clock::now()); },
                     [this] { return cluster_.now(); }, looked_until});
  acts_ = true;
  // Finished jobs need little work, and there may be very many of them: the other jobs go first.
  api::Time turn = cluster_.now();
  const auto wake = [&](controller::Controller& controller, const std::string& key, bool waits) {
    if (waits) turn += kBetweenFinished;
    controller.wake(key, waits ? turn : cluster_.now());
  };
  for (const std::string& key : cluster_.keys()) wake(controller_, key, cluster_.is_finished(key));
  for (const std::string& key : tfjobs_.keys())
    wake(tfjob_controller_, key, cluster_.is_finished(tfjobs_.companion_key(key)));
}

void OperatorProcess::work(controller::Controller& controller, WorkSignal& signal,
                           const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const uint64_t seen = signal.count();
    const std::optional<std::chrono::milliseconds> next = controller.work(stop);
    // Another worker's pass may add a job for a later time; the signal is not raised for it.
    signal.wait(seen, std::min(next.value_or(kIdle), kIdle), stop);
  }
}

// Its version changes when somebody upgrades, or forgets to.
void OperatorProcess::watch_definition(const std::stop_token& stop) {
  // In some namespaces only, an operator may not look at it.
  if (!options_.namespaces.empty()) return;
  const kube::Client client(transport_);
  do metrics_.set_definition(kube::definition_version(client));
  while (pause_for(kBetweenDefinitions, stop));
}

bool OperatorProcess::run(const std::stop_token& stop) {
  const std::stop_callback ends(stop, [this] { lost_.request_stop(); });
  // The threads are declared in the order in which they are needed, and end in the reverse order.
  std::vector<std::jthread> mirrors;
  for (const auto& reflector : reflectors_) {
    mirrors.emplace_back([&](const std::stop_token& end) { reflector->run(end); });
  }
  std::jthread events([this](const std::stop_token& end) { events_.run(end); });
  std::jthread election;
  if (options_.elects_leader) {
    election = std::jthread([this](const std::stop_token& end) { election_.run(end); });
  }
  if (!wait_to_lead(lost_.get_token())) return stop.stop_requested();
  begin_to_act();
  std::vector<std::jthread> workers;
  for (int i = 0; i < kPollers; ++i) {
    workers.emplace_back([this](const std::stop_token& end) { cluster_.poll_progress(end); });
  }
  for (int i = 0; i < options_.threads; ++i) {
    workers.emplace_back([this](const std::stop_token& end) { work(controller_, work_, end); });
    if (options_.tfjobs.taken == kube::TakenTfJobs::none) continue;
    workers.emplace_back(
        [this](const std::stop_token& end) { work(tfjob_controller_, tfjob_work_, end); });
  }
  workers.emplace_back([this](const std::stop_token& end) { usage_->run(end); });
  workers.emplace_back([this](const std::stop_token& end) { watch_definition(end); });
  Mutex mutex;
  MutexLock lock(mutex);
  StoppableConditionVariable over;
  over.wait(lock, lost_.get_token(), [] { return false; });
  for (std::jthread& worker : workers) worker.request_stop();
  workers.clear();
  if (stop.stop_requested()) usage_->try_to_write();
  return stop.stop_requested();
}

}  // namespace muster::cmd
