#include "common/exit_code.h"
#include "common/program/output.h"
#include "operator/api/crd.h"
#include "operator/cmd/local/commands.h"
#include "operator/local/yaml_text.h"

namespace muster::cmd {

int print_definition(const std::string& version, bool json) {
  Json definition = api::custom_resource_definition();
  definition["metadata"]["annotations"]["muster.dev/version"] = version;
  if (json) {
    print(stdout, "{}\n", definition.dump(2));
  } else {
    print(stdout, "{}", local::to_yaml(definition));
  }
  return kSuccess;
}

}  // namespace muster::cmd
