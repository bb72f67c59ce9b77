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
// "GET", "POST", "PUT", "PATCH", "DELETE".
const char* name_of(Method method);

struct Request {
  Method method = Method::get;
  std::string path;  // "/api/v1/namespaces/default/pods", percent-encoded where it has to be
  std::vector<std::pair<std::string, std::string>> query;  // plain; encoded by the transport
  std::string content_type;                                // of the body
  std::string body;
  // For the whole call, waiting for a free connection included. Of a stream: until its head.
  std::chrono::milliseconds deadline{30'000};
};

// How far a call came.
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

// How a stream ended, and what had been before.
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

// HTTP to one API server. Nothing here knows of Kubernetes objects, nothing above of connections.
// Thread-safe; what fails is a value, never an exception.
class Transport {
 public:
  virtual ~Transport() = default;

  // Blocks until the answer is whole, the deadline has passed or the transport is shut down. A
  // request is tried again only while nothing of it was sent (a connection found dead).
  virtual Response send(const Request& request) = 0;

  // Blocks; gives each line of the answer, without its end, to `on_line` on the calling thread: the
  // next ones wait meanwhile, in the server. An exception of `on_line` ends the stream and goes to
  // the caller.
  using OnLine = std::function<void(std::string_view line)>;
  virtual StreamEnd stream(const Request& request, const OnLine& on_line,
                           const std::stop_token& cancel) = 0;

  // Requested when it is shut down, from when on no call succeeds: nobody need pause for one.
  virtual std::stop_token down() const = 0;
};

}  // namespace muster::kube
