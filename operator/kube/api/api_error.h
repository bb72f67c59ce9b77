#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "common/documents/document.h"
#include "common/error.h"
#include "operator/kube/http/transport.h"

namespace muster::kube {

// The API server's words on a failure, from its Status object if it sent one.
struct ApiStatus {
  int code = 0;         // HTTP status; 0: no answer
  std::string reason;   // "NotFound", "AlreadyExists", "Conflict", "Expired", ...; "" if none
  std::string message;  // the server's message, or how the connection failed
  Json details;         // Status.details, or null
  std::optional<std::chrono::seconds> retry_after;
  bool sent = true;  // the server may have seen the request

  // Whether the object does not exist. A 404 without this reason means that its kind does not
  // exist.
  bool not_found() const { return code == 404 && reason == "NotFound"; }
  bool already_exists() const { return code == 409 && reason == "AlreadyExists"; }
  bool conflict() const { return code == 409 && reason != "AlreadyExists"; }
};

// The common base of both errors of the API; catch it to look at the status of either.
class ApiError {
 public:
  explicit ApiError(ApiStatus status) : status_(std::move(status)) {}
  virtual ~ApiError() = default;
  const ApiStatus& status() const { return status_; }

 private:
  ApiStatus status_;
};

// An error that may go away: no answer, a damaged answer, 401, 403 (a quota, or a role not granted
// yet), 404, 408, 409, 410, 429, 5xx.
class ApiUnavailable : public Unavailable, public ApiError {
 public:
  ApiUnavailable(const std::string& what, ApiStatus status)
      : Unavailable(what), ApiError(std::move(status)) {}
};

// An error of the request itself: 400, 405, 413, 415, 422, a redirect.
class ApiInvalid : public Invalid, public ApiError {
 public:
  ApiInvalid(const std::string& what, ApiStatus status)
      : Invalid(what), ApiError(std::move(status)) {}
};

// Returns the beginning of a text that is not a Status object, on one line, for messages.
std::string quoted(const std::string& body);

// Reads the status from an answer that is not a success.
ApiStatus status_of(const Response& response);

// Throws the error that fits `status`; what() is "POST /api/v1/...: 422 Invalid: <message>".
[[noreturn]] void throw_api_error(const Request& request, const ApiStatus& status);

}  // namespace muster::kube
