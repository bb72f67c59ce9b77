#include "operator/local/processes/ports.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "common/system/descriptor.h"

namespace muster::local {
namespace {

// A server on a free port of 127.0.0.1.
struct Server {
  Server() : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size);
    ::listen(socket.get(), 1);
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  Descriptor socket;
  int port = 0;
};

TEST(Ports, are_free_different_and_kept) {
  std::map<std::string, int> ports;
  EXPECT_TRUE(choose_ports({"a", "b", "c"}, ports).empty());
  std::set<int> distinct;
  for (const auto& [name, port] : ports) {
    EXPECT_TRUE(is_port_free(port)) << name;
    distinct.insert(port);
  }
  EXPECT_EQ(distinct.size(), 3u);
  const auto before = ports;
  EXPECT_TRUE(choose_ports({"a", "b", "c"}, ports).empty());
  EXPECT_EQ(ports, before);
}

TEST(Ports, are_of_an_address_of_either_family) {
  const Addresses addresses{{{"chief-0", 21000}, {"ps-0", 21001}, {"worker-0", 21002}},
                            {{"ps-0", "10.0.0.2"}, {"worker-0", "fd77::2"}}};
  EXPECT_EQ(addresses.of("chief-0"), "127.0.0.1:21000");
  EXPECT_EQ(addresses.of("ps-0"), "10.0.0.2:21001");
  EXPECT_EQ(addresses.of("worker-0"), "[fd77::2]:21002");
  EXPECT_TRUE(is_port_free(0));
  EXPECT_FALSE(is_port_free(0, "192.0.2.1"));    // RFC 5737: nobody's
  EXPECT_FALSE(is_port_free(0, "2001:db8::1"));  // RFC 3849: nobody's
  EXPECT_FALSE(is_port_free(0, "localhost"));
}

TEST(Ports, that_another_process_has_chosen_move_though_nobody_listens_yet) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::map<std::string, int> ports;
    choose_ports({"a"}, ports);
    const bool told = write(ends[1], &ports["a"], sizeof(int)) == sizeof(int);
    if (told) pause();
    _exit(1);
  }
  int port = 0;
  ASSERT_EQ(read(ends[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
  EXPECT_TRUE(is_port_free(port));
  std::map<std::string, int> ports = {{"a", port}};
  EXPECT_EQ(choose_ports({"a"}, ports).size(), 1u);
  EXPECT_NE(ports["a"], port);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ports = {{"a", port}};
  EXPECT_TRUE(choose_ports({"a"}, ports).empty());
  for (const int end : ends) close(end);
}

TEST(Ports, that_are_taken_move_and_are_named) {
  const Server server;
  EXPECT_FALSE(is_port_free(server.port));
  std::map<std::string, int> ports = {{"a", server.port}, {"gone", 1}};
  const auto moved = choose_ports({"a", "b"}, ports);
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].name, "a");
  EXPECT_EQ(moved[0].from, server.port);
  EXPECT_EQ(moved[0].to, ports["a"]);
  EXPECT_NE(ports["a"], server.port);
  EXPECT_FALSE(ports.contains("gone"));
}

TEST(Ports, are_added_beside_those_whose_servers_run) {
  const Server server;
  std::map<std::string, int> ports = {{"a", server.port}};
  add_ports({"a", "b", "c"}, ports);
  EXPECT_EQ(ports["a"], server.port);
  EXPECT_EQ(std::set<int>({ports["a"], ports["b"], ports["c"]}).size(), 3u);
}

TEST(Ports, given_twice_are_parted) {
  std::map<std::string, int> ports;
  choose_ports({"a"}, ports);
  ports["b"] = ports["a"];
  choose_ports({"a", "b"}, ports);
  EXPECT_NE(ports["a"], ports["b"]);
}

}  // namespace
}  // namespace muster::local
