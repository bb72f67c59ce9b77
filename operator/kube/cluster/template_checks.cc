#include "operator/kube/cluster/template_checks.h"

#include <algorithm>

#include "operator/api/status.h"
#include "operator/api/validate.h"
#include "operator/kube/pods/pods.h"

namespace muster::kube {

namespace {

using namespace std::chrono_literals;

// Admission rules and the labels of namespaces change seldom; a quota may be freed at any time.
constexpr auto kKeptValid = 10min;
constexpr auto kKeptInvalid = 30s;
constexpr auto kKeptUnchecked = 5s;
constexpr size_t kMostTemplates = 1'000;

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

Acceptance invalid(const std::string& why) {
  Acceptance acceptance;
  acceptance.invalid = why;
  return acceptance;
}

Acceptance unchecked(const std::string& why) {
  Acceptance acceptance;
  acceptance.unchecked = why;
  return acceptance;
}

std::chrono::milliseconds kept(const Acceptance& acceptance) {
  if (acceptance.invalid) return kKeptInvalid;
  return acceptance.unchecked ? std::chrono::milliseconds(kKeptUnchecked) : kKeptValid;
}

// Checks the rules of `muster submit`, without metadata and status, which the server sets. Of the
// status, rules see only whether the job has begun.
Acceptance validate(const api::TrainingJob& job, const Json& whole) {
  Json manifest = {{"apiVersion", "muster.dev/v1alpha1"},
                   {"kind", "TrainingJob"},
                   {"metadata", {{"name", job.name}}},
                   {"spec", whole.at("spec")}};
  if (job.status.start_time)
    manifest["status"] = {{"startTime", api::format_time(*job.status.start_time)}};
  try {
    Document document = Document::of(std::move(manifest), "manifest");
    const std::vector<Problem> problems = api::validate_for_cluster(document);
    if (problems.empty()) return {};
    const Problem& first = problems[0];
    std::string text = first.path + ": expected " + first.expected + ", found " + first.found;
    if (!first.hint.empty()) text += "; " + first.hint;
    if (problems.size() > 1) text += "; and " + std::to_string(problems.size() - 1) + " more";
    return invalid(text);
  } catch (const Invalid& error) {
    return invalid(error.what());
  }
}

}  // namespace

Acceptance judge_refusal(const ApiStatus& status) {
  if (status.already_exists()) return {};
  if (status.code == 403 && contains(status.message, "violates PodSecurity")) {
    return invalid(status.message);
  }
  const bool knows_no_dry_run = contains(status.message, "does not support dry run");
  if ((status.code == 400 || status.code == 422) && !knows_no_dry_run) {
    return invalid(status.message);
  }
  return unchecked(status.message);
}

Acceptance TemplateChecks::check(const api::TrainingJob& job, const Json& whole,
                                 const PodOf& pod_of, api::Time now) {
  {
    const MutexLock lock(mutex_);
    const auto known = jobs_.find(job.uid);
    if (known != jobs_.end() && known->second.generation == job.generation) {
      const Acceptance& acceptance = known->second.acceptance;
      if (!acceptance.again || now < *acceptance.again) return acceptance;
    }
  }
  Acceptance acceptance = check_all(job, whole, pod_of, now);
  const MutexLock lock(mutex_);
  jobs_[job.uid] = {job.generation, acceptance};
  return acceptance;
}

Acceptance TemplateChecks::check_all(const api::TrainingJob& job, const Json& whole,
                                     const PodOf& pod_of, api::Time now) {
  Acceptance acceptance = validate(job, whole);
  if (acceptance.invalid) return acceptance;
  for (const auto& [role, spec] : job.replicas) {
    if (spec.replicas == 0) continue;
    const Json pod = pod_of(role);
    if (const auto why = refuse_(pod)) return invalid(*why);
    const Acceptance of_role = check_template(pod, now);
    if (of_role.invalid) return of_role;
    if (of_role.unchecked && !acceptance.unchecked) acceptance = of_role;
  }
  return acceptance;
}

Acceptance TemplateChecks::check_template(const Json& pod, api::Time now) {
  const std::string key = template_key(pod);
  MutexLock lock(mutex_);
  for (;;) {
    Template& known = templates_[key];
    if (!known.asking && known.asked != api::Time{} && now < known.asked + kept(known.acceptance)) {
      return known.acceptance;
    }
    if (!known.asking) break;
    answered_.wait(lock);
  }
  templates_[key].asking = true;
  lock.unlock();
  Acceptance acceptance = ask(pod);
  if (acceptance.invalid || acceptance.unchecked) acceptance.again = now + kept(acceptance);
  lock.lock();
  templates_[key] = {/*asking=*/false, acceptance, now};
  drop_old(now);
  answered_.notify_all();
  return acceptance;
}

Acceptance TemplateChecks::ask(const Json& pod) const {
  try {
    dry_run_(pod);
    return {};
  } catch (const ApiUnavailable& error) {
    return judge_refusal(error.status());
  } catch (const ApiInvalid& error) {
    return judge_refusal(error.status());
  } catch (const Unavailable& error) {
    return unchecked(error.what());
  }
}

void TemplateChecks::drop_old(api::Time now) {
  if (templates_.size() <= kMostTemplates) return;
  std::erase_if(templates_, [&](const auto& entry) {
    const Template& known = entry.second;
    return !known.asking && now >= known.asked + kept(known.acceptance);
  });
}

void TemplateChecks::learn_refusal(const api::TrainingJob& job, const Json& pod, Acceptance refusal,
                                   api::Time now) {
  const std::string key = template_key(pod);
  refusal.again = now + kept(refusal);
  const MutexLock lock(mutex_);
  jobs_[job.uid] = {job.generation, std::move(refusal)};
  const auto known = templates_.find(key);
  if (known != templates_.end() && !known->second.asking) templates_.erase(known);
}

void TemplateChecks::learn_success(const api::TrainingJob& job) {
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job.uid);
  if (known != jobs_.end()) known->second = {job.generation, {}};
}

bool TemplateChecks::has_trouble(const std::string& job_uid) {
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job_uid);
  return known != jobs_.end() && known->second.acceptance != Acceptance{};
}

void TemplateChecks::forget(const std::string& job_uid) {
  const MutexLock lock(mutex_);
  jobs_.erase(job_uid);
}

}  // namespace muster::kube
