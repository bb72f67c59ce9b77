#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/error.h"
#include "operator/api/training_job.h"

namespace muster::kube {

// Names, addresses, labels, Services and TF_CONFIG of a job that a TFJob owns (TrainingJob::tfjob),
// in the form of the training-operator (kubeflow.org/v1), so that existing scripts and programs
// continue to work. All attempts of a replica share one name and one headless Service.

// A pod cannot be created yet, because the pod of an earlier attempt with the same name still
// exists.
class NameIsHeld : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

using Address = std::function<std::string(api::Role, int)>;  // "host:port" of a replica

bool is_tfjob(const api::TrainingJob& job);

// Whether a change of the TFJob's conditions tells what an event of its TrainingJob with this
// reason does.
bool is_told_by_tfjob(const std::string& reason);

// Returns the first part of the names of pods and Services: the TFJob's name. If the names would be
// longer than the 63 characters that a Service may have, it is the TrainingJob's name instead.
std::string tfjob_base_name(const api::TrainingJob& job);

// Returns the port in TF_CONFIG: the one named `tfjob-port` of the role's container, else 2222.
int tfjob_port(const api::TrainingJob& job, api::Role role);

// Adds the port named `tfjob-port` to the container of this name, unless the container declares it.
void add_tfjob_port(Json& containers, const std::string& container_name);

// Returns the labels by which scripts, dashboards and clients of TFJobs find a pod.
Json tfjob_labels(const api::TrainingJob& job, api::Role role, int index);

// Returns the Services of all replicas that the job wants.
std::vector<Json> tfjob_services(const api::TrainingJob& job);

// Returns TF_CONFIG as the training-operator writes it. `tf_config` is the TF_CONFIG of a
// TrainingJob and is not null. With enableDynamicWorker a worker's TF_CONFIG names all ps and the
// worker itself; that of a ps names only the ps itself.
Json tfjob_tf_config(const api::TrainingJob& job, Json tf_config, const Address& address);

}  // namespace muster::kube
