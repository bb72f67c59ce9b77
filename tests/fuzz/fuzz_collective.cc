#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/error.h"
#include "proto/muster/rendezvous.pb.h"
#include "tests/unit/common/listener.h"
#include "trainer/collective/wire_group.h"

using namespace muster;
using namespace muster::collective;

namespace {

constexpr size_t kFloats = 256, kBucket = 128;

GroupShape shape() {
  GroupShape shape;
  shape.members = shape.replicas = 2;
  return shape;
}

// Connects as member 1 and says `bytes`: with the greeting that is expected, or as the greeting.
Descriptor connect_and_say(const std::string& endpoint, std::string bytes, bool greets) {
  WireEndpoint own;
  own.ParseFromString(endpoint);
  const Greeting greeting{own.word(), 1, 2};
  if (greets) bytes.insert(0, reinterpret_cast<const char*>(&greeting), sizeof greeting);
  Descriptor socket = connect_to(static_cast<int>(own.port()));
  send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(socket.get(), SHUT_WR);
  return socket;
}

}  // namespace

// The first bytes of a connection between members, and the frames of steps and of state.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const bool greets = bytes[0] % 4 != 0;
  WireGroup group(shape(), 0, kFloats, "127.0.0.1", group::Identity(), {}, kBucket);
  const std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const Descriptor member = connect_and_say(group.endpoint(), text, greets);
  int glances = 0;
  const Session::Watch watch{{}, [&] { return ++glances > (greets ? 100 : 1); }};
  const compute::LossSums sums;
  try {
    group.connect({group.endpoint(), ""}, watch);
    compute::Floats state(kFloats);
    const std::span<float> buffer = state;
    if (bytes[0] % 4 == 1) group.broadcast(1, {true, false}, {&buffer, 1}, watch);
    for (uint64_t step = 0;; ++step) {
      group.all_reduce(step, Contribution(std::span(&sums, 1)), watch);
      group.note().text();
    }
  } catch (const Unavailable&) {
  }
  return 0;
}
