#include "operator/local/processes/ports.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <set>

#include "common/error.h"
#include "common/net/host_port.h"
#include "common/random.h"
#include "common/system/descriptor.h"
#include "common/system/system_words.h"
#include "common/threads/mutex.h"

namespace muster::local {

namespace {

constexpr int kFirstPort = 20000;
constexpr int kLastPort = 32000;

constexpr const char* kThisMachine = "127.0.0.1";
constexpr const char* kAnywhere = "0.0.0.0";

// Reserves the port for this process as long as it lives. Returns false if another process has
// reserved it: another `muster run` has chosen the port, although its server may not listen yet.
// The reservation is a socket name that only one socket of this machine can have. Without a free
// descriptor nothing is reserved.
bool claim(int port) {
  static Mutex mutex;
  static std::map<int, Descriptor> claimed;
  const MutexLock lock(mutex);
  if (claimed.contains(port)) return true;
  Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return true;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "muster port " + std::to_string(port);
  std::ranges::copy(name, address.sun_path + 1);  // after a zero byte: the name is not a file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return errno != EADDRINUSE;
  claimed.emplace(port, std::move(socket));
  return true;
}

int choose_port(const std::set<int>& taken, const char* ip = kThisMachine) {
  const int count = kLastPort - kFirstPort + 1;
  const int start = static_cast<int>(random_number() % static_cast<uint64_t>(count));
  for (int step = 0; step < count; ++step) {
    const int port = kFirstPort + (start + step) % count;
    if (!taken.contains(port) && is_port_free(port, ip) && claim(port)) return port;
  }
  throw Unavailable(std::string("expected a free port of ") + ip + " between " +
                    std::to_string(kFirstPort) + " and " + std::to_string(kLastPort) +
                    ", found none");
}

}  // namespace

std::string Addresses::of(const std::string& name) const {
  const auto host = hosts.find(name.substr(0, name.find('/')));
  const std::string ip = host == hosts.end() ? kThisMachine : host->second;
  return join_host_port(ip, std::to_string(ports.at(name)));
}

bool is_port_free(int port, const char* ip) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(ip, std::to_string(port).c_str(), &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> address(found, ::freeaddrinfo);
  const Descriptor socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket && errno != EAFNOSUPPORT)
    throw Unavailable(std::string("cannot look for a free port of ") + ip + ": " +
                      system_words(errno));
  // Connections of an earlier server that are closing do not count.
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return ::bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 &&
         ::listen(socket.get(), 1) == 0;
}

std::vector<int> free_ports(size_t count) {
  std::set<int> chosen;
  std::vector<int> ports;
  while (ports.size() < count) {
    ports.push_back(choose_port(chosen, kAnywhere));
    chosen.insert(ports.back());
  }
  return ports;
}

void add_ports(const std::vector<std::string>& names, std::map<std::string, int>& ports) {
  std::set<int> taken;
  for (const auto& [name, port] : ports) taken.insert(port);
  for (const std::string& name : names) {
    if (ports.contains(name)) continue;
    ports[name] = choose_port(taken);
    taken.insert(ports[name]);
  }
}

std::vector<MovedPort> choose_ports(const std::vector<std::string>& names,
                                    std::map<std::string, int>& ports) {
  std::map<std::string, int> chosen;
  std::set<int> taken;
  std::vector<std::string> wanting;
  for (const std::string& name : names) {
    const auto known = ports.find(name);
    if (known != ports.end() && !taken.contains(known->second) && is_port_free(known->second) &&
        claim(known->second)) {
      chosen[name] = known->second;
      taken.insert(known->second);
    } else {
      wanting.push_back(name);
    }
  }
  std::vector<MovedPort> moved;
  for (const std::string& name : wanting) {
    const int port = choose_port(taken);
    taken.insert(port);
    chosen[name] = port;
    if (const auto known = ports.find(name); known != ports.end()) {
      moved.push_back({name, known->second, port});
    }
  }
  ports = std::move(chosen);
  return moved;
}

}  // namespace muster::local
