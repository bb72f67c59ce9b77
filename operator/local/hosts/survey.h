#pragma once

#include <string>
#include <vector>

#include "operator/local/hosts/hosts_file.h"
#include "operator/local/hosts/protocol.h"

namespace muster::local {

// A host that can be used: it has answered, and has no problem.
struct KnownHost {
  Host host;  // with the final number of slots
  std::string ip;
  HostFacts facts;
};

struct Survey {
  std::vector<KnownHost> usable;
  std::vector<std::string> notes;  // a line for each host that is not used, with the reason
};

// Asks hundreds of hosts at once, each for half a minute at most; `request` needs no address.
Survey survey(const HostsFile& file, const SurveyRequest& request);

}  // namespace muster::local
