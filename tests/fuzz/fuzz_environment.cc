#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/error.h"
#include "trainer/group/address.h"
#include "trainer/group/membership.h"
#include "trainer/group/tf_config.h"

using namespace muster;

namespace {

// "NAME=value" by lines.
group::Environment environment_of(std::string_view text) {
  group::Environment environment;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return environment;
}

// A membership that is accepted must have all that a trainer asks of it.
void use(const group::Membership& membership) {
  if (!membership.distributed() && !membership.collective()) return;
  if (!group::is_address(membership.rendezvous_address())) __builtin_trap();
  if (membership.role == group::Role::evaluator) return;
  if (!group::is_address(membership.own_address())) __builtin_trap();
  group::listening_address(membership.reachable_address());
  if (membership.is_member() && membership.rank() >= std::max(1, membership.members()))
    __builtin_trap();
}

}  // namespace

// The variables by which a trainer knows its place: those with JSON one by one, and all together.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  group::Membership membership;
  try {
    switch (bytes[0] % 4) {
      case 0:
        group::parse_tf_config(text, membership);
        break;
      case 1:
        group::parse_replicas(text, membership);
        break;
      case 2:
        group::parse_elastic(text, membership);
        break;
      default:
        use(group::parse_membership(environment_of(text)));
    }
  } catch (const Invalid&) {
  }
  return 0;
}
