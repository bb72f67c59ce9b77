#pragma once

#include <string>

namespace muster::kube {

// A kind of object as the API addresses it.
struct Resource {
  std::string group;  // "" for the core group
  std::string version;
  std::string plural;
  std::string kind;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }

  // Returns "/apis/<group>/<version>", or "/api/<version>" of the core group.
  std::string version_path() const;

  // Returns "/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>/<subresource>"; empty
  // parts are left out, and an empty namespace means all of them. Names are percent-encoded.
  std::string path(const std::string& name_space, const std::string& name = {},
                   const std::string& subresource = {}) const;
};

Resource pods();
Resource services();
Resource secrets();
Resource config_maps();
Resource events();
Resource leases();
Resource deployments();
Resource custom_resource_definitions();
Resource training_jobs();  // muster.dev/v1alpha1
Resource tfjobs();         // kubeflow.org/v1

}  // namespace muster::kube
