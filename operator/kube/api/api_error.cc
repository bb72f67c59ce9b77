#include "operator/kube/api/api_error.h"

#include "common/documents/json.h"

namespace muster::kube {

namespace {

constexpr size_t kMostQuoted = 200;

bool lasts(int code) {
  if (code >= 300 && code < 400) return true;
  if (code < 400 || code >= 500) return false;
  return code != 401 && code != 403 && code != 404 && code != 408 && code != 409 && code != 410 &&
         code != 429;
}

}  // namespace

// The body may come from a proxy, a load balancer or another server.
std::string quoted(const std::string& body) {
  std::string text = body.substr(0, kMostQuoted);
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ') letter = ' ';
  }
  return text.empty() ? "no further words" : text + (body.size() > kMostQuoted ? "..." : "");
}

ApiStatus status_of(const Response& response) {
  ApiStatus status;
  status.code = response.status;
  status.retry_after = response.retry_after;
  status.sent = response.sent;
  if (response.status == 0) {
    status.message = response.error;
    return status;
  }
  const Json body = parse_or_null(response.body);
  if (string_or(body, "kind", "") != "Status") {
    status.message = quoted(response.body);
    return status;
  }
  status.reason = string_or(body, "reason", "");
  status.message = string_or(body, "message", "");
  status.details = member(body, "details");
  return status;
}

void throw_api_error(const Request& request, const ApiStatus& status) {
  std::string what = std::string(name_of(request.method)) + " " + request.path + ": ";
  if (status.code != 0) what += std::to_string(status.code) + " ";
  if (!status.reason.empty()) what += status.reason + ": ";
  what += status.message;
  if (lasts(status.code)) throw ApiInvalid(what, status);
  throw ApiUnavailable(what, status);
}

}  // namespace muster::kube
