#pragma once

#include <string>

#include "operator/kube/api/client.h"

namespace muster::kube {

struct Release {
  int tracked = 0;      // pods that had the tracking finalizer
  int released = 0;     // pods whose finalizer was removed
  std::string trouble;  // error for the first pod that still has it; empty: none
};

// Removes the tracking finalizer from the pods of all jobs of a namespace (empty: of all
// namespaces), so that the pods can be deleted without an operator that counts their ends. Their
// other finalizers stay. Makes one pass, page by page, with `at_a_time` pods at a time. Throws
// ApiUnavailable or ApiInvalid if the pods cannot be listed.
Release release_pods(const Client& client, const std::string& name_space, int at_a_time);

}  // namespace muster::kube
