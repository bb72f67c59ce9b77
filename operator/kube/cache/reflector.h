#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "operator/kube/api/resource.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/http/transport.h"

namespace muster::kube {

// Keeps a Mirror equal to the API server: it lists the objects in pages, and then watches, with
// bookmarks, from the resourceVersion of the list. It lists again when the server has forgotten
// that version (410), and pauses with jitter after failures. Survives restarts of the server and
// connections that die silently.
class Reflector {
 public:
  struct Settings {
    Resource resource;
    std::string name_space;      // empty: all
    std::string label_selector;  // "muster.dev/job"
    // The number of objects in a list's first page, and the largest number in any page. A page asks
    // for as many objects as should fit into about page_bytes, by the sizes in the page before it:
    // an object may have a megabyte, and reading an answer takes a multiple of the answer's size in
    // memory. If large objects follow many small ones, an answer may become too large; the list
    // then begins again with smaller pages.
    int first_page = 16, page = 500;
    size_t page_bytes = 4 << 20;
    // Each watch ends after a random time between these two, so that the load of many watches is
    // spread over time.
    std::chrono::seconds shortest_watch{300}, longest_watch{600};
    std::chrono::milliseconds first_pause{100}, longest_pause{10'000};
    // The longest Retry-After that is followed.
    std::chrono::milliseconds longest_retry_after{60'000};
  };
  // Called after a list or watch that failed: "list of pods: 403 Forbidden: ...". Also called,
  // without a pause, for objects that were left out because they cannot be read.
  using Report = std::function<void(const std::string& trouble, std::chrono::milliseconds pause)>;
  // Waits, or returns false at once when asked to stop. A test may pass one that does not wait.
  using Wait = std::function<bool(std::chrono::milliseconds, const std::stop_token&)>;

  Reflector(Transport& transport, Mirror& mirror, Settings settings, Report report);
  Reflector(Transport& transport, Mirror& mirror, Settings settings, Report report, Wait wait,
            std::function<uint64_t()> random);

  // Runs on the caller's thread until `stop`, or until the transport is shut down.
  void run(const std::stop_token& stop);

  // Whether the first list is complete, so that the mirror holds all objects of the server.
  bool synced() const { return synced_; }
  // Blocks until synced() or `stop`; returns false if stopped.
  bool wait_synced(const std::stop_token& stop) const;

 private:
  // Why a list or a watch ended, and therefore what comes next.
  struct Outcome {
    bool progress = false;  // an answer or an event came: pauses begin anew
    bool relist = false;
    bool pause = false;  // whether to pause before the next step
    std::string trouble;
    std::optional<std::chrono::seconds> retry_after;
  };
  static Outcome failure(std::string trouble,
                         std::optional<std::chrono::seconds> retry_after = std::nullopt);
  static Outcome progress(Outcome outcome, bool came);
  static Outcome relist(Outcome outcome, bool came);

  Request request() const;
  Request watch_request() const;
  Outcome list(const std::stop_token& stop);
  int next_page(int page, size_t bytes) const;
  Outcome list_failure(const std::string& what, const Response& response, bool first_page);
  void ask_for_less();
  Outcome watch(const std::stop_token& stop);
  std::chrono::milliseconds pause_after(const Outcome& outcome);

  Transport& transport_;
  Mirror& mirror_;
  const Settings settings_;
  const Report report_;
  const Wait wait_;
  const std::function<uint64_t()> random_;
  std::string resource_version_;  // empty: a list is due
  int failures_ = 0;
  // Largest number of objects in a page: halved after an answer that was too large, doubled by each
  // list.
  int page_;
  bool whole_list_ = false;  // pages expired while they were read, so read the list in one answer
  std::atomic<bool> synced_ = false;
};

}  // namespace muster::kube
