#pragma once

#include <prometheus/registry.h>

#include <memory>

#include "operator/kube/http/credentials.h"
#include "operator/kube/http/transport.h"

namespace muster::kube {

// Starts the threads that all HTTP connections of the process share. Call this once, first in main.
void initialize_transport();

// A Transport over TLS, by cpprestsdk. Comments in the .cc file explain the workarounds.
class HttpTransport final : public Transport {
 public:
  struct Settings {
    int in_flight = 16;                        // calls at a time; others wait for their turn
    std::chrono::seconds silence{120};         // longest silence of a stream
    size_t largest_answer = 64 * 1024 * 1024;  // bytes of a body
    size_t longest_line = 8 * 1024 * 1024;     // bytes of a line of a stream
  };
  // Counts calls as rest_client_requests_total{code, method, host} in `registry`.
  HttpTransport(Credentials& credentials, prometheus::Registry& registry, Settings settings);
  // Ends the calls under way. No new call may begin.
  ~HttpTransport() override;
  HttpTransport(const HttpTransport&) = delete;
  HttpTransport& operator=(const HttpTransport&) = delete;

  Response send(const Request& request) override;
  StreamEnd stream(const Request& request, const OnLine& on_line,
                   const std::stop_token& cancel) override;

  // Makes every further call fail at once, and ends the calls under way. Thread-safe.
  void shut_down();
  std::stop_token down() const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::kube
