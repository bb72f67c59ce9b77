#pragma once

#include "operator/cluster/cluster.h"

namespace muster::cluster {

// A Cluster around another one, to which it hands on every call. Derived classes override what they
// change.
class ForwardingCluster : public Cluster {
 public:
  explicit ForwardingCluster(Cluster& inner) : inner_(inner) {}  // which must outlive it

  api::Time now() const override { return inner_.now(); }
  std::optional<api::TrainingJob> get(const std::string& key) override { return inner_.get(key); }
  plan::Observed observe(const api::TrainingJob& job) override { return inner_.observe(job); }
  bool publish_status(const api::TrainingJob& job, const api::JobStatus& status) override {
    return inner_.publish_status(job, status);
  }
  void create(const api::TrainingJob& job, std::span<const plan::CreateReplica> replicas) override {
    inner_.create(job, replicas);
  }
  void remove(const api::TrainingJob& job, std::span<const plan::RemoveReplica> replicas) override {
    inner_.remove(job, replicas);
  }
  void emit(const api::TrainingJob& job, const plan::Event& event) override {
    inner_.emit(job, event);
  }
  void remove_job(const api::TrainingJob& job) override { inner_.remove_job(job); }

 protected:
  Cluster& inner() { return inner_; }

 private:
  Cluster& inner_;
};

}  // namespace muster::cluster
