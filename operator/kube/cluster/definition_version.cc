#include "operator/kube/cluster/definition_version.h"

#include "common/documents/json.h"
#include "common/program/log.h"

namespace muster::kube {

std::string definition_version(const Client& client) {
  const Resource jobs = training_jobs();
  const std::string name = jobs.plural + "." + jobs.group;
  try {
    const std::optional<Json> definition = client.get(custom_resource_definitions(), {"", name});
    if (!definition) return "";
    return string_or(member(member(*definition, "metadata"), "annotations"), kVersionAnnotation,
                     "");
  } catch (const Unavailable& error) {
    log::debug(std::string("the version of the CustomResourceDefinition is not known: ") +
               error.what());
  } catch (const Invalid& error) {
    log::debug(std::string("the version of the CustomResourceDefinition is not known: ") +
               error.what());
  }
  return "";
}

}  // namespace muster::kube
