#pragma once

#include <memory>

#include "trainer/group/identity.h"
#include "trainer/ps/serving/shard_host.h"

namespace muster::ps {

// Keeps a stream from a shard that is served here to the process that should hold its second copy,
// if the group's view names one. Opens the stream again, with back-off, when it breaks. Runs on a
// separate thread.
class StandbyLink {
 public:
  // `host` must outlive this object.
  StandbyLink(ShardHost& host, const group::Identity& identity);
  ~StandbyLink();
  StandbyLink(const StandbyLink&) = delete;
  StandbyLink& operator=(const StandbyLink&) = delete;

  // Receives the newest view of the group.
  void look(const GroupView& view);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::ps
