#include "operator/kube/pods/names.h"

#include "common/digest.h"
#include "operator/kube/pods/tfjob_pods.h"

namespace muster::kube {

namespace {

// No vowels, so that no name is a word; and no letters that look alike.
constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
constexpr size_t kSuffix = 5;

std::string suffix(const std::string& text) {
  auto number = std::stoull(sha256(text).substr(0, 15), nullptr, 16);
  std::string letters;
  for (; letters.size() < kSuffix; number /= kLetters.size()) {
    letters += kLetters[number % kLetters.size()];
  }
  return letters;
}

}  // namespace

std::string key_of(const api::TrainingJob& job) {
  return job.name_space + "/" + job.name;
}

std::string host_name(const api::TrainingJob& job, api::Role role, int index) {
  const std::string base = is_tfjob(job) ? tfjob_base_name(job) : job.name;
  return base + "-" + api::role_name(job, role) + "-" + std::to_string(index);
}

std::string pod_name(const api::TrainingJob& job, api::Role role, int index, int attempt) {
  if (is_tfjob(job)) return host_name(job, role, index);
  return host_name(job, role, index) + "-" + suffix(job.uid + "/" + std::to_string(attempt));
}

std::string peer_address(const api::TrainingJob& job, api::Role role, int index,
                         const std::string& cluster_domain) {
  const std::string domain = cluster_domain.empty() ? "" : "." + cluster_domain;
  const std::string service = is_tfjob(job) ? "" : "." + job.name;
  const int port = is_tfjob(job) ? tfjob_port(job, role) : kPeerPort;
  return host_name(job, role, index) + service + "." + job.name_space + ".svc" + domain + ":" +
         std::to_string(port);
}

std::string label_selector(const api::TrainingJob& job) {
  return std::string(kJobLabel) + "=" + job.name;
}

std::string label_selector(const api::TrainingJob& job, api::Role role) {
  return label_selector(job) + "," + kRoleLabel + "=" + api::role_name(job, role);
}

}  // namespace muster::kube
