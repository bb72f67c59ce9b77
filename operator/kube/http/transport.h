#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::kube {

enum class Method { get, post, put, patch, remove };
// Returns "GET", "POST", "PUT", "PATCH" or "DELETE".
const char* name_of(Method method);

struct Request {
  Method method = Method::get;
  std::string path;  // "/api/v1/namespaces/default/pods", percent-encoded where it has to be
  std::vector<std::pair<std::string, std::string>> query;  // plain; encoded by the transport
  std::string content_type;                                // of the body
  std::string body;
  // The time for the whole call, including the wait for a free connection; for a stream, until its
  // head.
  std::chrono::milliseconds deadline{30'000};
};

// The point that a call reached.
enum class Phase {
  waiting,     // for its turn: nothing was tried
  connecting,  // no connection, or no TLS on it
  answering,   // sent, in part at least; no head of an answer
  reading,     // the head is known, the body is not whole
  done,
};
const char* name_of(Phase phase);

struct Response {
  int status = 0;  // 0: no whole answer came
  std::string body;
  std::optional<std::chrono::seconds> retry_after;
  Phase phase = Phase::done;
  bool sent = true;   // the server may have seen the request
  std::string error;  // why no answer came
};

// The end of a stream, and what came before it.
struct StreamEnd {
  enum class Reason {
    closed,     // by the server, cleanly, after status 200
    refused,    // by a status other than 200, with `body`
    cancelled,  // by the caller
    silent,     // nothing came for too long
    lost,       // no connection, or one that broke
  };
  Reason reason = Reason::closed;
  int status = 0;    // 0: no head came
  std::string body;  // of a refusal
  std::optional<std::chrono::seconds> retry_after;
  std::string error;  // of `silent` and `lost`
};

// HTTP to one API server. This layer knows nothing of Kubernetes objects, and the layers above know
// nothing of connections. Thread-safe; failures are returned as values, never thrown.
class Transport {
 public:
  virtual ~Transport() = default;

  // Blocks until the answer is whole, the deadline has passed or the transport is shut down. A
  // request is tried again only while nothing of it was sent (its connection was found closed).
  virtual Response send(const Request& request) = 0;

  // Blocks; passes each line of the answer, without its end, to `on_line` on the calling thread:
  // the next lines wait in the server meanwhile. An exception of `on_line` ends the stream and goes
  // to the caller.
  using OnLine = std::function<void(std::string_view line)>;
  virtual StreamEnd stream(const Request& request, const OnLine& on_line,
                           const std::stop_token& cancel) = 0;

  // Returns a token that is requested at shut-down: from then on no call succeeds, so there is no
  // point in a pause before a retry.
  virtual std::stop_token down() const = 0;
};

}  // namespace muster::kube
