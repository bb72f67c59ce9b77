#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "operator/kube/http/transport.h"

namespace muster::kube {

// A Transport that answers as a test says and keeps what it was asked.
class FakeTransport : public Transport {
 public:
  using OnSend = std::function<Response(const Request&)>;
  using OnStream =
      std::function<StreamEnd(const Request&, const OnLine&, const std::stop_token& cancel)>;

  explicit FakeTransport(OnSend on_send, OnStream on_stream = {})
      : on_send_(std::move(on_send)), on_stream_(std::move(on_stream)) {}

  Response send(const Request& request) override {
    keep(request);
    return on_send_(request);
  }
  StreamEnd stream(const Request& request, const OnLine& on_line,
                   const std::stop_token& cancel) override {
    keep(request);
    return on_stream_(request, on_line, cancel);
  }

  std::stop_token down() const override { return down_.get_token(); }
  void shut_down() { down_.request_stop(); }

  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void keep(const Request& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }

  const OnSend on_send_;
  const OnStream on_stream_;
  std::stop_source down_;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
};

inline Response answer(int status, std::string body) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

// A refusal as the API server words it.
inline Response refusal(int status, const std::string& reason, const std::string& message) {
  const Json body = {{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
                     {"message", message}, {"reason", reason},   {"code", status}};
  return answer(status, body.dump());
}

// The value of a query's key; "" where there is none.
inline std::string query(const Request& request, const std::string& key) {
  for (const auto& [name, value] : request.query) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace muster::kube
