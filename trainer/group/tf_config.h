#pragma once

#include <string_view>

#include "trainer/group/membership.h"

namespace muster::group {

// Each function parses the text of one environment variable into `membership`, and throws Invalid
// (kBadConfig) naming the variable and field, what was expected and what was found. The first one
// parses TF_CONFIG: role, index, cluster.
void parse_tf_config(std::string_view text, Membership& membership);

// Parses MUSTER_REPLICAS: the number of replicas of each role.
void parse_replicas(std::string_view text, Membership& membership);

// Parses MUSTER_ELASTIC.
void parse_elastic(std::string_view text, Membership& membership);

}  // namespace muster::group
