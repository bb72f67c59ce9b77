#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/plan/values.h"

namespace muster::cluster {

// Where replicas live: Kubernetes, or this machine. The controller knows nothing else of either.
class Cluster {
 public:
  virtual ~Cluster() = default;

  virtual api::Time now() const = 0;

  // The job with its status, or nothing if it is gone.
  virtual std::optional<api::TrainingJob> get(const std::string& key) = 0;
  virtual plan::Observed observe(const api::TrainingJob& job) = 0;

  // One write; throws Unavailable where it conflicts or fails, and then nothing else is done. False
  // if it is put off, which only a status may be from which nothing follows: the job is woken in
  // time, and events wait with it.
  virtual bool publish_status(const api::TrainingJob& job, const api::JobStatus& status) = 0;

  // Safe when late or repeated. Of several replicas, several may be under way at a time; where one
  // fails, which throws, some of the others may have been done and the rest are not begun.
  virtual void create(const api::TrainingJob& job,
                      std::span<const plan::CreateReplica> replicas) = 0;
  virtual void remove(const api::TrainingJob& job,
                      std::span<const plan::RemoveReplica> replicas) = 0;
  virtual void emit(const api::TrainingJob& job, const plan::Event& event) = 0;
  virtual void remove_job(const api::TrainingJob& job) = 0;
};

}  // namespace muster::cluster
