#pragma once

#include <map>
#include <string>

#include "common/documents/document.h"
#include "common/threads/mutex.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/loop/recorder.h"
#include "trainer/metrics/reporter.h"

namespace muster::loop {

// Adds to rank 0's /progress the facts about the group that the operator needs: "missing", the
// replicas that are not connected (["ps-1", "worker-0"]); "stalled", if there is any, the work of
// all replicas that gives no sign of life (metrics::stalled_json); and "restartsInPlace", one entry
// for each replica whose trainer was restarted in its container, once training has continued after
// the restart: [{"replica": "worker-1", "attempt": 0, "restarts": 2, "exitCode": 137, "seconds":
// 2.1}]; `seconds` is the time from the end of the replica's process to the next step with the
// replica.
class GroupReport {
 public:
  // The references must outlive this object. Destroy it only when no thread trains any more.
  GroupReport(metrics::Reporter& reporter, group::RendezvousServer& server, Recorder& recorder);
  ~GroupReport();
  GroupReport(const GroupReport&) = delete;
  GroupReport& operator=(const GroupReport&) = delete;

 private:
  Json describe() const;
  void note_progress(Recorder::Clock::time_point now);

  metrics::Reporter& reporter_;
  group::RendezvousServer& server_;
  Recorder& recorder_;
  mutable Mutex mutex_;
  std::map<std::string, Json> restarts_ MUSTER_GUARDED_BY(mutex_);  // by replica
};

}  // namespace muster::loop
