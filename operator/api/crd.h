#pragma once

#include "common/documents/document.h"

namespace muster::api {

// Returns the CustomResourceDefinition of TrainingJob, apiextensions.k8s.io/v1:
// training_job_schema() as a structural schema of Kubernetes, with its rules in CEL and in the
// words of `muster validate`. Needs Kubernetes 1.29 or newer.
//
// Where the two differ, the API server is the more lenient: it takes a null for a field that is
// left out, and does not look at
// - what layers refer to, their names and shapes, and whether data, model and loss fit each other:
//   spec::check_training() checks this when it builds the graph;
// - data files, which are not on the API server's machine;
// - features that this build does not have yet: the trainer's image decides this;
// - 64 KiB as the limit of spec.training: CEL cannot measure an object;
// - boundaries that are equal (it only sees that they do not fall), and misspelt fields of a
//   container, which the dry run of the pod finds.
// The API server compares fields of a template that are not in the schema only where the old and
// the new object both have them, so a running job may exchange one such field for another.
Json custom_resource_definition();

}  // namespace muster::api
