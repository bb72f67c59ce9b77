#include "tests/unit/trainer/simulation/process.h"

#include "tests/unit/trainer/simulation/world.h"

namespace muster::simulation {

namespace {
const char* name_of(Place::Role role) {
  constexpr const char* kNames[] = {"ps", "chief", "worker"};
  return kNames[static_cast<int>(role)];
}
}  // namespace

Place Place::of_rank(int rank) {
  return rank == 0 ? kChief : Place{Role::worker, rank - 1};
}

std::string Place::text() const {
  return std::string(name_of(role)) + " " + std::to_string(index);
}

Hello Process::hello() const {
  Hello hello;
  hello.set_role(name_of(place_.role));
  hello.set_address("10.0.0.1:2222");
  hello.set_host(world_.host_of(place_));
  hello.set_index(static_cast<uint32_t>(place_.index));
  hello.set_attempt(static_cast<uint32_t>(attempt_));
  hello.set_incarnation(incarnation());
  return hello;
}

void Process::tell(const char* what, uint64_t number) const {
  world_.tell(id_, what, number);
}

}  // namespace muster::simulation
