#pragma once

#include <string>

#include "operator/kube/api/client.h"

namespace muster::kube {

// Parts of the metadata of an object, as the API server has it.

ObjectName name_of(const Json& object);
std::string uid_of(const Json& object);
// UID of the controller among an object's owners, or "".
std::string owner_uid_of(const Json& object);
// The text of whose an object is, for people: "Pod lab/x of Job y", or "... of nobody".
std::string describe_owner(const Json& object);

}  // namespace muster::kube
