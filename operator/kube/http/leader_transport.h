#pragma once

#include <functional>

#include "operator/kube/http/transport.h"

namespace muster::kube {

// What only the leader may write by: a call that is no GET is asked for leadership each time it is
// tried, and not sent without.
class LeaderTransport final : public Transport {
 public:
  // `transport` must outlive it.
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
