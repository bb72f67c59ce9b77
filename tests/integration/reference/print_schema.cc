// The schema of a TrainingJob as JSON, for tests/python/make_reference.py.

#include <cstdio>

#include "operator/api/schema.h"

int main() {
  std::puts(muster::api::training_job_schema().dump(1).c_str());
}
