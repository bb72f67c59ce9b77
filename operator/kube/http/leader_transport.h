#pragma once

#include <functional>

#include "operator/kube/http/transport.h"

namespace muster::kube {

// The transport for everything that only the leader may write. Before each attempt of a call other
// than GET it asks `leads`, and does not send the call if `leads` returns false.
class LeaderTransport final : public Transport {
 public:
  // `transport` must outlive this object.
  LeaderTransport(Transport& transport, std::function<bool()> leads)
      : transport_(transport), leads_(std::move(leads)) {}

  Response send(const Request& request) override;
  StreamEnd stream(const Request& request, const OnLine& on_line,
                   const std::stop_token& cancel) override;
  std::stop_token down() const override { return transport_.down(); }

 private:
  Transport& transport_;
  const std::function<bool()> leads_;
};

}  // namespace muster::kube
