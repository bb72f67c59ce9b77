#pragma once

#include <string>

#include "operator/kube/api/client.h"

namespace muster::kube {

// Readers of an object's metadata, in the API server's form.

ObjectName name_of(const Json& object);
std::string uid_of(const Json& object);
// Returns the UID of the controller among an object's owners, or "".
std::string owner_uid_of(const Json& object);
// Whether the object's controller is an earlier object with the same kind and name as the
// controller of `wanted`. That controller is deleted, and the garbage collector will delete the
// object.
bool is_left_by_predecessor(const Json& object, const Json& wanted);
// Describes the owner of an object for people: "Pod lab/x of Job y", or "... of nobody".
std::string describe_owner(const Json& object);

}  // namespace muster::kube
