#include "operator/kube/http/leader_transport.h"

namespace muster::kube {

Response LeaderTransport::send(const Request& request) {
  if (request.method == Method::get || leads_()) return transport_.send(request);
  Response unsent;
  unsent.phase = Phase::waiting;
  unsent.sent = false;
  unsent.error = "another operator leads";
  return unsent;
}

StreamEnd LeaderTransport::stream(const Request& request, const OnLine& on_line,
                                  const std::stop_token& cancel) {
  return transport_.stream(request, on_line, cancel);
}

}  // namespace muster::kube
