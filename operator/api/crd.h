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
//   that is the graph, built by spec::check_training();
// - files of data, which are not on its machine;
// - what this build cannot do yet: the trainer's image decides that;
// - 64 KiB as the limit of spec.training: CEL cannot measure an object;
// - boundaries that are equal (it only sees that they do not fall), and misspelt fields of a
//   container, which the dry run of the pod finds.
// It compares a template's fields that the schema does not know only where old and new both have
// them, so that one may be exchanged for another while the job runs.
Json custom_resource_definition();

}  // namespace muster::api
