#include "operator/kube/api/metadata.h"

#include "common/documents/json.h"

namespace muster::kube {

namespace {

const Json& controller_of(const Json& object) {
  static const Json none;
  for (const Json& owner : member(member(object, "metadata"), "ownerReferences")) {
    if (bool_or(owner, "controller", false)) return owner;
  }
  return none;
}

}  // namespace

ObjectName name_of(const Json& object) {
  const Json& metadata = member(object, "metadata");
  return {string_or(metadata, "namespace", ""), string_or(metadata, "name", "")};
}

std::string uid_of(const Json& object) {
  return string_or(member(object, "metadata"), "uid", "");
}

std::string owner_uid_of(const Json& object) {
  return string_or(controller_of(object), "uid", "");
}

bool is_left_by_predecessor(const Json& object, const Json& wanted) {
  const Json &found = controller_of(object), &ours = controller_of(wanted);
  const auto is_same = [&](const char* field) {
    return string_or(found, field, "") == string_or(ours, field, "");
  };
  return !found.is_null() && is_same("kind") && is_same("name") && !is_same("uid");
}

std::string describe_owner(const Json& object) {
  const Json& owner = controller_of(object);
  const std::string whose =
      owner.is_null() ? "nobody"
                      : string_or(owner, "kind", "?") + " " + string_or(owner, "name", "?");
  return string_or(object, "kind", "object") + " " + name_of(object).key() + " of " + whose;
}

}  // namespace muster::kube
