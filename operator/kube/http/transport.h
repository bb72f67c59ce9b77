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
  std::vector<std::pair<std::string, std::string>> query;  // not encoded; the transport encodes it
  std::string content_type;                                // content type of the body
  std::string body;
  // The time limit of the whole call, including the wait for a free connection; for a stream, the
  // limit until its head.
  std::chrono::milliseconds deadline{30'000};
};

// The point that a call reached.
enum class Phase {
  waiting,     // waiting for its turn; nothing was tried
  connecting,  // no connection yet, or no TLS on it
  answering,   // sent, at least in part; no head of an answer yet
  reading,     // the head has come; the body is not whole yet
  done,
};
const char* name_of(Phase phase);

struct Response {
  int status = 0;  // 0: the answer is not whole
  std::string body;
  std::optional<std::chrono::seconds> retry_after;
  Phase phase = Phase::done;
  bool sent = true;   // the server may have seen the request
  std::string error;  // why no answer came
};

// The end of a stream, and the part of the answer that came before it.
struct StreamEnd {
  enum class Reason {
    closed,     // the server ended it cleanly, after status 200
    refused,    // a status other than 200, with `body`
    cancelled,  // the caller cancelled it
    silent,     // the server was silent for too long
    lost,       // no connection, or a broken one
  };
  Reason reason = Reason::closed;
  int status = 0;    // 0: no head came
  std::string body;  // body of a refusal
  std::optional<std::chrono::seconds> retry_after;
  std::string error;  // the error, for `silent` and `lost`
};

// HTTP to one API server. This layer knows nothing of Kubernetes objects, and the layers above know
// nothing of connections. Thread-safe; failures are returned as values, never thrown.
class Transport {
 public:
  virtual ~Transport() = default;

  // Blocks until the answer is whole, the deadline has passed or the transport is shut down. A
  // request is tried again only while nothing of it was sent (its connection was found closed).
  virtual Response send(const Request& request) = 0;

  // Blocks, and passes each line of the answer, without its line end, to `on_line` on the calling
  // thread. While `on_line` runs, further lines wait in the server. An exception from `on_line`
  // ends the stream and reaches the caller.
  using OnLine = std::function<void(std::string_view line)>;
  virtual StreamEnd stream(const Request& request, const OnLine& on_line,
                           const std::stop_token& cancel) = 0;

  // Returns a token that is requested at shut-down. After that no call succeeds, so a retry after a
  // pause is pointless.
  virtual std::stop_token down() const = 0;
};

}  // namespace muster::kube
