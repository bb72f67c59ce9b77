#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/http/transport.h"

namespace muster::kube {

// Of one namespace: {"api", "v1", "namespaces", "lab", "pods", "x", "status"}; of none: {"api",
// "v1", "nodes", "x"}.
std::vector<std::string> segments(const std::string& path);

// "pods" of an object, or of an owner, whose kind is Pod.
std::string plural_of(const Json& object);

// A fake of the API server, in memory: enough of its rules (names, versions, preconditions,
// finalizers, graceful deletion, owners) to see how KubeCluster fares when calls fail, answers are
// lost and views are old. What it says of pods is what the test says: nothing runs.
class FakeApiServer final : public Transport {
 public:
  // Looks at a request before the server does; an answer is given in its place. Where several calls
  // are made at a time, so are those of this and of the next.
  using Intercept = std::function<std::optional<Response>(const Request&)>;
  Intercept intercept;
  // Who is asking may do that (chart_rights.h); empty: everybody may do everything. Else 403.
  std::function<bool(const Request&)> permits;
  // After the server has done what was asked, the answer is lost where this says so.
  std::function<bool(const Request&)> loses_answer;

  Response send(const Request& request) override;
  StreamEnd stream(const Request&, const OnLine&, const std::stop_token&) override { return {}; }
  std::stop_token down() const override { return {}; }

  // What users and others do, without a request. An object is of {apiVersion, kind, metadata, ...}.
  void put(Json object);
  void remove(const std::string& plural, const std::string& name);  // as kubectl delete
  // Of no such object: a failure of the test, and null.
  Json object(const std::string& plural, const std::string& name) const;
  bool has(const std::string& plural, const std::string& name) const;
  std::vector<Json> objects(const std::string& plural) const;  // by name

  // The kubelet: sets a pod's status, by merging; a pod that has ended and is to go, goes.
  void set_status(const std::string& pod, const Json& status);
  void run_pod(const std::string& pod);
  void end_pod(const std::string& pod, int exit_code);
  // Every pod that was asked to leave ends with this exit code.
  void end_leaving_pods(int exit_code = 143);

  // Fills a mirror with what is there now.
  void list(Mirror& mirror, const std::string& plural);
  // Tells a mirror what has happened since it was told last.
  void tell(Mirror& mirror, const std::string& plural);

  std::vector<std::string> calls() const {
    return calls_;
  }  // "POST pods", "PUT trainingjobs/status"
  int count(const std::string& call) const;
  // Lines of a watch of this kind, of what is newer than this resourceVersion.
  std::vector<std::string> watch_lines(const std::string& plural, uint64_t after) const;
  void forget_calls() { calls_.clear(); }

 private:
  struct Route {
    std::string plural, name, subresource;
  };
  Response answer(const Request& request);
  Response list(const std::string& plural, const Request& request);
  Response create(const Route& route, Json object, bool dry_run);
  Response update(const Route& route, const Json& object);
  Response patch(const Route& route, const Request& request);
  Response remove(const Route& route, const Json& options);
  void store(const std::string& plural, Json object, const char* event);
  void settle(const std::string& plural, const std::string& name);
  void collect(const std::string& owner_uid);
  Json* find(const std::string& plural, const std::string& name);
  std::string next_version() { return std::to_string(++version_); }

  struct Line {
    uint64_t version;
    std::string text;
  };
  std::map<std::string, std::map<std::string, Json>> objects_;  // by plural and name
  std::map<std::string, std::vector<Line>> log_;                // of watches, by plural
  std::map<const Mirror*, size_t> told_;
  std::mutex one_;  // call at a time; what a test does itself, it does while there is none
  std::vector<std::string> calls_;
  uint64_t version_ = 1000;
  int uids_ = 0;
};

}  // namespace muster::kube
