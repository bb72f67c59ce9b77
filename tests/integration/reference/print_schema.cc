// The schema of a TrainingJob and the variables of the environment as JSON, for
// tests/python/make_reference.py.

#include <cstdio>

#include "common/variables.h"
#include "operator/api/schema.h"

int main() {
  using muster::Json;
  constexpr const char* kSetters[] = {
      "`muster run` and the operator", "the operator", "`muster run`",
      "`muster-supervisor`",           "you",          "the program that starts it"};
  Json variables = Json::array();
  for (const muster::Variable& variable : muster::variables())
    variables.push_back({{"name", variable.name},
                         {"setter", kSetters[static_cast<int>(variable.setter)]},
                         {"meaning", variable.meaning}});
  const Json all = {{"schema", muster::api::training_job_schema()}, {"variables", variables}};
  std::puts(all.dump(1).c_str());
}
