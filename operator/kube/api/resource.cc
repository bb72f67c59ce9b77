#include "operator/kube/api/resource.h"

#include <cctype>
#include <cstdio>

namespace muster::kube {

namespace {

std::string encoded(const std::string& segment) {
  std::string result;
  for (const char letter : segment) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) || letter == '-' || letter == '.' || letter == '_' || letter == '~') {
      result += letter;
    } else {
      char code[4];
      std::snprintf(code, sizeof code, "%%%02X", byte);
      result += code;
    }
  }
  return result;
}

}  // namespace

std::string Resource::version_path() const {
  if (group.empty()) return "/api/" + encoded(version);
  return "/apis/" + encoded(group) + "/" + encoded(version);
}

std::string Resource::path(const std::string& name_space, const std::string& name,
                           const std::string& subresource) const {
  std::string path = version_path();
  if (!name_space.empty()) path += "/namespaces/" + encoded(name_space);
  path += "/" + plural;
  if (!name.empty()) path += "/" + encoded(name);
  if (!subresource.empty()) path += "/" + subresource;
  return path;
}

Resource pods() {
  return {"", "v1", "pods", "Pod"};
}
Resource services() {
  return {"", "v1", "services", "Service"};
}
Resource secrets() {
  return {"", "v1", "secrets", "Secret"};
}
Resource config_maps() {
  return {"", "v1", "configmaps", "ConfigMap"};
}
Resource events() {
  return {"", "v1", "events", "Event"};
}
Resource leases() {
  return {"coordination.k8s.io", "v1", "leases", "Lease"};
}
Resource deployments() {
  return {"apps", "v1", "deployments", "Deployment"};
}
Resource custom_resource_definitions() {
  return {"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"};
}
Resource tfjobs() {
  return {"kubeflow.org", "v1", "tfjobs", "TFJob"};
}

Resource training_jobs() {
  return {"muster.dev", "v1alpha1", "trainingjobs", "TrainingJob"};
}

}  // namespace muster::kube
