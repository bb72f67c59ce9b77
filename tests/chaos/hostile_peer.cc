#include "tests/chaos/hostile_peer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "common/digest.h"
#include "common/system/descriptor.h"
#include "proto/muster/parameter_server.pb.h"

namespace muster::chaos {

namespace {

using Random = std::mt19937_64;
using std::chrono::milliseconds;

size_t below(Random& random, size_t n) {
  return random() % n;
}

std::string noise(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string mutated(Random& random, std::string bytes) {
  for (size_t i = below(random, 5); i > 0 && !bytes.empty(); --i) {
    const size_t at = below(random, bytes.size());
    switch (below(random, 3)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.insert(at, noise(random, below(random, 8)));
        break;
      default:
        bytes.erase(at, below(random, 8));
    }
  }
  return bytes;
}

// The highest `bytes` bytes of a number come first.
std::string big_endian(uint32_t number, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    text.push_back(static_cast<char>(number >> shift));
  return text;
}

// RFC 9113, 4.1.
std::string frame(char type, char flags, uint32_t stream, const std::string& payload,
                  std::optional<uint32_t> claimed = {}) {
  return big_endian(claimed.value_or(static_cast<uint32_t>(payload.size())), 3) + type + flags +
         big_endian(stream, 4) + payload;
}

// RFC 7541, 6.2.2: a literal, not indexed, with a new name.
std::string header(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name +
         static_cast<char>(value.size()) + value;
}

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "");

// Of another job, and of the one that is attacked.
struct Uid {
  std::string text;
  std::string base64;
};
const Uid kUids[] = {{"uid-0", "dWlkLTA"}, {"uid-1", "dWlkLTE"}};

// A gRPC call as it goes over the wire. `claimed`: of the message, where that is a lie.
std::string call(const std::string& path, const Uid& uid, const std::string& message,
                 std::optional<uint32_t> claimed = {}) {
  const std::string headers =
      header(":method", "POST") + header(":scheme", "http") + header(":path", path) +
      header(":authority", "x") + header("te", "trailers") +
      header("content-type", "application/grpc") + header("muster-job-uid-bin", uid.base64);
  const std::string prefix(1, '\0');
  return kPreface + frame(1, 4, 1, headers) +
         frame(0, 1, 1,
               prefix + big_endian(claimed.value_or(static_cast<uint32_t>(message.size())), 4) +
                   message);
}

// Returns the message as an exchange in plaintext carries it: behind its CRC-32C.
std::string sealed(const std::string& message) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(message)));
  return std::string(reinterpret_cast<const char*>(&crc), sizeof crc) + message;
}

// A message that would be right elsewhere, and the call that it is for. Half of those who send it
// know the job's uid, and nothing else of it.
std::string strange_call(Random& random) {
  const Uid& uid = kUids[below(random, 2)];
  const auto lie = below(random, 4) == 0 ? std::optional<uint32_t>(random()) : std::nullopt;
  const auto with = [&](const std::string& method, const google::protobuf::MessageLite& message) {
    return call("/muster." + method, uid, mutated(random, message.SerializeAsString()), lie);
  };
  const auto sealed_with = [&](const std::string& method,
                               const google::protobuf::MessageLite& message) {
    return call("/muster." + method, uid, sealed(mutated(random, message.SerializeAsString())),
                lie);
  };
  PeerMessage peer;
  peer.mutable_hello()->set_job_uid(uid.text);
  peer.mutable_hello()->set_role("ps");
  peer.mutable_hello()->set_address("127.0.0.1:1");
  peer.add_shards()->set_generation(random());
  Push push;
  push.mutable_hello()->set_job_uid(uid.text);
  push.set_generation(1);
  push.set_step(random());
  push.set_gradients(noise(random, below(random, 4096)));
  OpenRequest open;
  open.set_job_uid(uid.text);
  open.set_generation(random());
  open.set_members(static_cast<uint32_t>(random()));
  SnapshotRequest snapshot;
  snapshot.set_generation(1);
  Forward forward;
  *forward.mutable_hello()->mutable_opening() = open;
  forward.mutable_hello()->set_incarnation(random());
  forward.set_floats(random());
  forward.set_values(noise(random, below(random, 4096)));
  WriteRequest write;
  write.set_generation(1);
  write.set_directory("checkpoints/../../x");
  switch (below(random, 7)) {
    case 0:
      return with("Rendezvous/Attend", peer);
    case 1:
      return sealed_with("ParameterServer/Exchange", push);
    case 2:
      return with("ParameterServer/Open", open);
    case 3:
      return with("ParameterServer/Snapshot", snapshot);
    case 4:
      return with("ParameterServer/Write", write);
    case 5:
      return sealed_with("ParameterServer/Follow", forward);
    default:
      return with("Rendezvous/Nothing", peer);
  }
}

std::string strange_http(Random& random) {
  switch (below(random, 4)) {
    case 0:
      return "GET /" + noise(random, below(random, 64)) + " HTTP/1.1\r\n\r\n";
    case 1:
      return "GET /metrics HTTP/1.1\r\nx: " + std::string(1 << 20, 'x');
    case 2:
      return "POST /progress HTTP/1.1\r\ncontent-length: 99999999999999\r\n\r\n" +
             noise(random, 4096);
    default:
      return mutated(random,
                     "GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  }
}

std::string any_bytes(Random& random) {
  switch (below(random, 6)) {
    case 0:
      return noise(random, below(random, 4096));
    case 1:
      return kPreface.substr(0, below(random, kPreface.size()));
    case 2:  // a frame that claims to be longer than it is, of any type and flags
      return kPreface + frame(static_cast<char>(below(random, 12)), static_cast<char>(random()),
                              static_cast<uint32_t>(below(random, 4)), noise(random, 64),
                              static_cast<uint32_t>(random() % (1 << 24)));
    case 3:
      return mutated(random, strange_call(random));
    case 4:
      return strange_http(random);
    default:
      return strange_call(random);
  }
}

// Nothing where nobody listens.
Descriptor connect_to(int port) {
  Descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::connect(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return Descriptor();
  return made;
}

void say(const Descriptor& connection, std::string_view bytes) {
  if (!connection) return;
  const ssize_t sent = ::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  static_cast<void>(sent);  // whatever the other end thinks of it
}

void throw_bytes(const std::stop_token& stop, const std::vector<int>& ports, Random random) {
  while (!stop.stop_requested()) {
    const Descriptor connection = connect_to(ports[below(random, ports.size())]);
    say(connection, any_bytes(random));
    if (below(random, 2) == 0) {
      pollfd answer{connection.get(), POLLIN, 0};
      ::poll(&answer, 1, 20);
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
}

// Calls without a fault of form, by somebody of another job: at every port in turn, each until it
// is answered or has had time to be.
void knock(const std::stop_token& stop, const std::vector<int>& ports) {
  PeerMessage peer;
  peer.mutable_hello()->set_job_uid(kUids[0].text);
  Push push;
  push.mutable_hello()->set_job_uid(kUids[0].text);
  const std::string calls[] = {
      call("/muster.Rendezvous/Attend", kUids[0], peer.SerializeAsString()),
      call("/muster.ParameterServer/Exchange", kUids[0], sealed(push.SerializeAsString()))};
  for (size_t at = 0; !stop.stop_requested(); ++at) {
    const Descriptor connection = connect_to(ports[at / 2 % ports.size()]);
    say(connection, calls[at % 2]);
    // It may stand behind hundreds of others at the port.
    pollfd accepted{connection.get(), POLLIN, 0};
    if (connection) ::poll(&accepted, 1, 1000);
    std::this_thread::sleep_for(milliseconds(connection ? 100 : 10));
  }
}

void flood(const std::stop_token& stop, const std::vector<int>& ports) {
  while (!stop.stop_requested()) {
    std::vector<Descriptor> connections;
    for (int i = 0; i < 300; ++i)
      for (const int port : ports) connections.push_back(connect_to(port));
    std::this_thread::sleep_for(milliseconds(300));
  }
}

void whisper(const std::stop_token& stop, const std::vector<int>& ports, Random random) {
  struct Slow {
    Descriptor connection;
    std::string bytes;
  };
  std::vector<Slow> all;
  for (int i = 0; i < 10; ++i)
    for (const int port : ports) all.push_back({connect_to(port), strange_call(random)});
  for (size_t at = 0; !stop.stop_requested(); ++at) {
    for (const Slow& slow : all)
      if (at < slow.bytes.size()) say(slow.connection, slow.bytes.substr(at, 1));
    std::this_thread::sleep_for(milliseconds(20));
  }
}

}  // namespace

HostilePeer::HostilePeer(const std::vector<int>& ports, uint64_t seed) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  for (uint64_t i = 0; i < 2; ++i)
    threads_.emplace_back(
        [ports, seed, i](std::stop_token stop) { throw_bytes(stop, ports, Random(seed + i)); });
  threads_.emplace_back([ports](std::stop_token stop) { knock(stop, ports); });
  threads_.emplace_back([ports](std::stop_token stop) { flood(stop, ports); });
  threads_.emplace_back(
      [ports, seed](std::stop_token stop) { whisper(stop, ports, Random(seed + 9)); });
}

}  // namespace muster::chaos
