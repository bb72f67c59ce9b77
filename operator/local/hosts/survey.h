#pragma once

#include <string>
#include <vector>

#include "operator/local/hosts/hosts_file.h"
#include "operator/local/hosts/protocol.h"

namespace muster::local {

// A host that may be used: it has answered, and nothing stands in the way.
struct KnownHost {
  Host host;  // with its slots
  std::string ip;
  HostFacts facts;
};

struct Survey {
  std::vector<KnownHost> usable;
  std::vector<std::string> notes;  // why another host is not used, a line each
};

// Asks hundreds of hosts at once, each for half a minute at most; `request` needs no address.
Survey survey(const HostsFile& file, const SurveyRequest& request);

}  // namespace muster::local
