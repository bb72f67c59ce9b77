#pragma once

#include <memory>

#include "trainer/group/identity.h"
#include "trainer/ps/serving/shard_host.h"

namespace muster::ps {

// Keeps a stream from a shard that is served here to the process that is to hold its second copy,
// if the group's view names one; opens it again, with back-off, when it breaks. Runs on a thread of
// its own.
class StandbyLink {
 public:
  // `host` must outlive it.
  StandbyLink(ShardHost& host, const group::Identity& identity);
  ~StandbyLink();
  StandbyLink(const StandbyLink&) = delete;
  StandbyLink& operator=(const StandbyLink&) = delete;

  // Takes the newest view of the group.
  void look(const GroupView& view);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::ps
