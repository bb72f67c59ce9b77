#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "tests/unit/operator/kube/fake_api_server.h"
#include "tests/unit/operator/kube/test_server.h"

namespace muster::cmd {

// A FakeApiServer behind HTTP, its lists to be watched: what a whole muster-operator needs.
class HttpApi {
 public:
  using Message = kube::TestServer::Message;
  using Reply = kube::TestServer::Reply;
  // Looks at a call before the server does, on a thread of its connection's, where it may block; an
  // answer is given in its place.
  using Intercept = std::function<std::optional<Reply>(const Message&)>;
  explicit HttpApi(Intercept intercept = {});

  std::string url() const { return http_.url(); }

  // What a test does with the server itself, while no call is answered.
  template <class Do>
  auto with(Do what) {
    const std::lock_guard lock(mutex_);
    return what(server_);
  }
  // Of calls that the server has answered, as FakeApiServer counts them.
  int count(const std::string& call);
  // TrainingJob `name` of one ps, chief, worker and evaluator.
  void submit(const std::string& name);
  // The pods of a role; those that have ended, too.
  std::vector<std::string> pods(const std::string& role);

 private:
  std::optional<Reply> handle(const Message& message, kube::TestServer::Peer& peer);
  void watch(const kube::Request& request, kube::TestServer::Peer& peer);

  const Intercept intercept_;
  std::mutex mutex_;  // guards server_
  kube::FakeApiServer server_;
  kube::TestServer http_;  // last: its threads use what is above
};

}  // namespace muster::cmd
