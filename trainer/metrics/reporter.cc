#include "trainer/metrics/reporter.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <utility>

#include "common/job/metric_name.h"
#include "common/net/http_server.h"
#include "common/program/hang_guard.h"
#include "common/program/process_metrics.h"
#include "common/program/time_ledger.h"
#include "common/text/shorten.h"
#include "common/threads/mutex.h"
#include "trainer/metrics/names.h"

namespace muster::metrics {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;

constexpr size_t kMostOfStall = 512;

double seconds(std::chrono::system_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Returns this process's stalled work.
Json own_stalls(const std::string& replica) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Json stalls = Json::array();
  for (const Stall& stall : current_stalls()) {
    stalls.push_back(stalled_json(replica, shorten(stall.doing, kMostOfStall),
                                  seconds(now - stall.lasted),
                                  stall.kind == WatchedWork::Kind::storage));
  }
  return stalls;
}

}  // namespace

struct Reporter::Impl {
  Impl(std::string role_name, int index_number)
      : role(std::move(role_name)),
        index(index_number),
        labels{{"role", role}, {"index", std::to_string(index)}} {}

  template <typename Metric>
  Family<Metric>& family(prometheus::detail::Builder<Metric> builder, const std::string& name) {
    return builder.Name(name).Help(help_of(name)).Labels(labels).Register(registry);
  }
  Gauge& gauge(const std::string& name, const Labels& extra = {}) {
    return family(prometheus::BuildGauge(), metric_name(name, "")).Add(extra);
  }
  Counter& counter(const std::string& name, const Labels& extra = {}) {
    return family(prometheus::BuildCounter(), metric_name(name, "_total")).Add(extra);
  }
  Histogram& histogram(const std::string& full_name, std::span<const double> bounds,
                       const Labels& extra = {}) {
    return family(prometheus::BuildHistogram(), full_name)
        .Add(extra, Histogram::BucketBoundaries(bounds.begin(), bounds.end()));
  }
  void begin_one(const Description& metric, const Labels& extra);
  void begin();
  void show(const Progress& now) MUSTER_REQUIRES(mutex);
  void show_time();

  const std::string role;
  const int index;
  const Labels labels;
  const TimeLedger* const ledger = TimeLedger::of_this_thread();
  prometheus::Registry registry;
  mutable Mutex mutex;
  Progress progress MUSTER_GUARDED_BY(mutex);
  std::string resumed MUSTER_GUARDED_BY(mutex);
  Json requested_checkpoint MUSTER_GUARDED_BY(mutex);
  Mutex more_mutex;
  std::map<std::string, std::function<Json()>> more MUSTER_GUARDED_BY(more_mutex);
  Mutex measure_mutex;
  std::vector<std::function<void()>> measures MUSTER_GUARDED_BY(measure_mutex);
  std::unique_ptr<HttpServer> server;  // the last member, because its handlers use the others
};

void Reporter::Impl::begin_one(const Description& metric, const Labels& extra) {
  const std::string name(metric.name);
  if (metric.kind == Kind::counter) counter(name, extra);
  if (metric.kind == Kind::histogram) histogram(metric_name(name, ""), metric.bounds, extra);
  if (metric.kind == Kind::gauge) gauge(name, extra);
}

// Shows 0 for all that may happen, because an alert on an increase does not see a series whose
// first value is more than 0.
void Reporter::Impl::begin() {
  const unsigned we = who_is(role, index);
  for (const Description& metric : descriptions()) {
    if ((metric.from_the_start & we) == 0) continue;
    if (metric.label.empty()) begin_one(metric, {});
    for (const std::string_view value : metric.values)
      begin_one(metric, {{std::string(metric.label), std::string(value)}});
  }
}

void Reporter::Impl::show(const Progress& now) {
  gauge("step").Set(static_cast<double>(now.step));
  gauge("total_steps").Set(static_cast<double>(now.total_steps));
  gauge("epoch").Set(static_cast<double>(now.epoch));
  if (now.loss) gauge("loss").Set(*now.loss);
  gauge("examples_per_second").Set(now.examples_per_second);
  gauge("eta_seconds").Set(now.eta_seconds);
  gauge("last_checkpoint_step").Set(static_cast<double>(now.last_checkpoint_step));
  gauge("last_checkpoint_timestamp_seconds").Set(now.last_checkpoint_time);
  gauge("goodput").Set(now.goodput);
  gauge("generation").Set(static_cast<double>(now.generation));
  for (const auto& [name, value] : now.training)
    gauge("training_metric", {{"name", name}}).Set(value);
  for (const auto& [name, value] : now.validation) {
    if (name == "loss")
      gauge("validation_loss").Set(value);
    else
      gauge("validation_metric", {{"name", name}}).Set(value);
  }
  if (!now.validation.empty())
    gauge("validation_step").Set(static_cast<double>(now.validation_step));
  for (const auto& [name, value] : now.group) gauge(metric_tag("group", name)).Set(value);
  if (now.state != progress.state) gauge("state", {{"state", progress.state}}).Set(0);
  gauge("state", {{"state", now.state}}).Set(1);
}

void Reporter::Impl::show_time() {
  if (ledger == nullptr) return;
  const TimeSpent spent = ledger->spent();
  auto& uses = family(prometheus::BuildCounter(), metric_name("time_seconds", "_total"));
  for (const TimeUseName& use : time_uses()) {
    Counter& counter = uses.Add({{"use", use.name}});
    counter.Increment(std::max(0.0, spent[use.use] - counter.Value()));
  }
}

Reporter::Reporter(const std::string& address, std::string role, int index, int restarts)
    : impl_(std::make_unique<Impl>(std::move(role), index)) {
  impl_->begin();
  impl_->show(impl_->progress);
  impl_->gauge("restarts").Set(restarts);
  if (address.empty()) return;
  impl_->server = std::make_unique<HttpServer>(address);
  impl_->server->handle("/metrics", [this] {
    return HttpReply{200, "text/plain; version=0.0.4; charset=utf-8", metrics_text()};
  });
  impl_->server->handle("/healthz", [] { return HttpReply{.body = "ok\n"}; });
  impl_->server->handle("/progress", [this, restarts] {
    Json json = snapshot().json(impl_->role, impl_->index);
    json["restarts"] = restarts;
    if (impl_->ledger != nullptr) json["ledger"] = impl_->ledger->json();
    if (Json stalls = own_stalls(impl_->role + "-" + std::to_string(impl_->index)); !stalls.empty())
      json["stalled"] = std::move(stalls);
    {
      const MutexLock lock(impl_->more_mutex);
      for (const auto& [who, more] : impl_->more) json.update(more());
    }
    const MutexLock lock(impl_->mutex);
    if (!impl_->resumed.empty()) json["resumed"] = impl_->resumed;
    if (!impl_->requested_checkpoint.is_null())
      json["requestedCheckpoint"] = impl_->requested_checkpoint;
    return HttpReply{200, "application/json",
                     json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
  });
  impl_->server->start();
}

Reporter::~Reporter() = default;

void Reporter::update(const Progress& progress) {
  const MutexLock lock(impl_->mutex);
  impl_->show(progress);
  impl_->progress = progress;
}

void Reporter::resumed(const std::string& sentence) {
  const MutexLock lock(impl_->mutex);
  impl_->resumed = sentence;
}

void Reporter::met_request(const std::string& request, uint64_t step, const std::string& folder) {
  const MutexLock lock(impl_->mutex);
  impl_->requested_checkpoint = {{"request", request}, {"step", step}, {"checkpoint", folder}};
}

void Reporter::also_say(const std::string& who, std::function<Json()> more) {
  const MutexLock lock(impl_->more_mutex);
  if (more)
    impl_->more[who] = std::move(more);
  else
    impl_->more.erase(who);
}

void Reporter::measure_first(std::function<void()> measure) {
  const MutexLock lock(impl_->measure_mutex);
  impl_->measures.push_back(std::move(measure));
}

Progress Reporter::snapshot() const {
  const MutexLock lock(impl_->mutex);
  return impl_->progress;
}

void Reporter::count(const std::string& name, double amount,
                     const std::map<std::string, std::string>& labels) {
  impl_->counter(name, labels).Increment(amount);
}

void Reporter::gauge(const std::string& name, double value,
                     const std::map<std::string, std::string>& labels) {
  impl_->gauge(name, labels).Set(value);
}

void Reporter::observe(const std::string& name, double seconds) {
  Durations one;
  one.add(seconds);
  observe(name, one);
}

void Reporter::observe(const std::string& name, const Durations& durations,
                       const std::map<std::string, std::string>& labels) {
  const auto& counts = durations.counts();
  impl_->histogram(metric_name(name, "_seconds"), Durations::kBounds, labels)
      .ObserveMultiple({counts.begin(), counts.end()}, durations.sum());
}

void Reporter::observe(const std::string& name, std::span<const double> bounds,
                       const std::vector<double>& counts, double sum) {
  impl_->histogram(metric_name(name, ""), bounds).ObserveMultiple(counts, sum);
}

std::string Reporter::metrics_text() const {
  {
    const MutexLock lock(impl_->measure_mutex);
    for (const auto& measure : impl_->measures) measure();
  }
  impl_->show_time();
  const std::vector<Stall> stalls = current_stalls();
  impl_->gauge("stalled_seconds").Set(stalls.empty() ? 0 : seconds(stalls.front().lasted));
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  for (prometheus::MetricFamily& family : process_metrics(impl_->labels))
    families.push_back(std::move(family));
  families.push_back(build_info("muster-trainer", MUSTER_VERSION, impl_->labels));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace muster::metrics
