#pragma once

#include <string_view>

#include "trainer/group/membership.h"

namespace muster::group {

// These parse the text of one environment variable into `membership`, and throw Invalid
// (kBadConfig) naming the variable and field, what was expected and what was found.

// Parses the part that TF_CONFIG decides: role, index, cluster.
void parse_tf_config(std::string_view text, Membership& membership);

// Parses the part that MUSTER_REPLICAS decides: the number of replicas of each role.
void parse_replicas(std::string_view text, Membership& membership);

// Parses the part that MUSTER_ELASTIC decides.
void parse_elastic(std::string_view text, Membership& membership);

}  // namespace muster::group
