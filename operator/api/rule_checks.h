#pragma once

#include <string>

#include "common/document.h"

namespace muster::api {

// What rules.cc finds in a manifest, a function for each rule: `self` is the object at the rule's
// path, which may have failed its schema. Each returns "" where all is well, else what was found.

std::string chief_and_master(const Json& self);
std::string nobody_computes(const Json& self);
std::string fewer_ps_than_copies(const Json& self);
std::string copies_with_backup_workers(const Json& self);
std::string no_ps(const Json& self);
std::string ps_in_collective(const Json& self);
std::string evaluation_with_ps(const Json& self);
std::string too_many_backup_workers(const Json& self);
std::string nothing_to_evaluate(const Json& self);
std::string decided_by_nobody(const Json& self);
std::string elastic_backwards(const Json& self);
std::string elastic_without_workers(const Json& self);
std::string elastic_without_collectives(const Json& self);
std::string elastic_with_shards_of_files(const Json& self);
std::string dynamic_worker_with_training(const Json& self);
std::string devices_with_ps(const Json& self);
std::string synchronization_of_collective(const Json& self);
std::string rule_without_match(const Json& self);
std::string rule_for_missing_role(const Json& self);
std::string more_than_all(const Json& self);
std::string gang_in_order(const Json& self);
std::string left_to_templates(const Json& self);

}  // namespace muster::api
