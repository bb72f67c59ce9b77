#include "common/net/host_port.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(HostPortTest, AnIpv6AddressIsPutInBrackets) {
  struct Case {
    const char* host;
    const char* port;
    const char* joined;
  };
  for (const Case& one : {Case{"mnist-chief-0.lab", "2222", "mnist-chief-0.lab:2222"},
                          Case{"10.0.0.1", "80", "10.0.0.1:80"},
                          Case{"fd00::1", "443", "[fd00::1]:443"}, Case{"::", "1", "[::]:1"}}) {
    EXPECT_EQ(join_host_port(one.host, one.port), one.joined);
    EXPECT_EQ(host_of(one.joined), one.host);
    EXPECT_EQ(port_of(one.joined), one.port);
  }
}

TEST(HostPortTest, ATextWithoutAPortIsAHost) {
  EXPECT_EQ(host_of("localhost"), "localhost");
  EXPECT_EQ(port_of("localhost"), "");
  EXPECT_EQ(host_of(""), "");
}

}  // namespace
}  // namespace muster
