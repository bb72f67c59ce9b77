#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/plan/values.h"

namespace muster::cluster {

// The place where replicas live: Kubernetes, or this machine. The controller sees both only through
// this interface.
class Cluster {
 public:
  virtual ~Cluster() = default;

  virtual api::Time now() const = 0;

  // Returns the job with its status, or nothing if it is gone.
  virtual std::optional<api::TrainingJob> get(const std::string& key) = 0;
  virtual plan::Observed observe(const api::TrainingJob& job) = 0;

  // Writes the status in one write. Throws Unavailable if the write conflicts or fails; the caller
  // then does nothing else. Returns false if the write is put off, which is allowed only for a
  // status that no action depends on: the job is then woken in time, and its events wait too.
  virtual bool publish_status(const api::TrainingJob& job, const api::JobStatus& status) = 0;

  // These actions are safe when late or repeated. Several replicas may be handled at a time; if one
  // fails, which throws, some of the others may have been done and the rest are not begun.
  virtual void create(const api::TrainingJob& job,
                      std::span<const plan::CreateReplica> replicas) = 0;
  virtual void remove(const api::TrainingJob& job,
                      std::span<const plan::RemoveReplica> replicas) = 0;
  virtual void emit(const api::TrainingJob& job, const plan::Event& event) = 0;
  virtual void remove_job(const api::TrainingJob& job) = 0;
};

}  // namespace muster::cluster
