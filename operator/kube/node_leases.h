#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "operator/kube/client.h"
#include "operator/kube/lease.h"

namespace muster::kube {

// Whether the kubelets of nodes renew their Leases (namespace kube-node-lease), which a kubelet
// does every ten seconds. Judged by what this process has seen of a Lease and by this machine's
// clock alone: the time that is written in a Lease is another machine's, and is compared with
// nothing but itself. Asked only of nodes that somebody has reason to doubt. Thread-safe.
class NodeLeases {
 public:
  static constexpr std::chrono::seconds kSilence{15};
  static constexpr std::chrono::seconds kEvery{5};  // between questions about one node
  using Clock = std::function<BootTime()>;

  NodeLeases(const Client& client, Clock clock) : client_(client), clock_(std::move(clock)) {}

  // The Lease was not renewed for kSilence, for all of which the API server has answered us: a
  // question that fails, and one that was not asked for too long, begin the observation anew. Not
  // where there is no Lease, or where we may not look at it. `again`: when to ask about it again.
  bool is_silent(const std::string& node, std::chrono::milliseconds& again);

 private:
  struct Seen {
    std::string renewed;  // as it is written
    BootTime since{};     // when we first saw it so
    BootTime asked{};
  };
  std::optional<std::string> ask(const std::string& node) const;
  static BootTime due(const Seen& seen);

  const Client& client_;
  const Clock clock_;
  std::mutex mutex_;
  std::map<std::string, Seen> nodes_;
};

}  // namespace muster::kube
