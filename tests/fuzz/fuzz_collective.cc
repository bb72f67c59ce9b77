#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/digest.h"
#include "common/error.h"
#include "proto/muster/rendezvous.pb.h"
#include "tests/unit/common/net/listener.h"
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

template <class Value>
void append(std::string& text, const Value& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Returns the input as frames with the right CRCs, behind which the fuzzer would otherwise not
// come. Of each the input has a kind, an index, the size of its content in two bytes, and the
// content.
std::string frames_of(std::string_view input) {
  std::string frames;
  while (input.size() >= 4) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(input[i]); };
    const auto header = Connections::Header::of({byte(0), byte(1)});
    const std::string_view content = input.substr(4, byte(2) + 256u * byte(3));
    input.remove_prefix(4 + content.size());
    append(frames, header);
    frames += content;
    append(frames, crc32c(std::as_bytes(std::span(content)), header.check));
  }
  return frames;
}

}  // namespace

// The first bytes of a connection between members, and the frames of steps and of state.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const bool greets = bytes[0] % 4 != 0;
  WireGroup group(shape(), 0, kFloats, "127.0.0.1", group::Identity(), {}, kBucket);
  std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if (bytes[0] % 4 >= 2) text = frames_of(text);
  const Descriptor member = connect_and_say(group.endpoint(), text, greets);
  int glances = 0;
  const Session::Watch watch{{}, [&] { return ++glances > (greets ? 100 : 1); }};
  const compute::LossSums sums;
  try {
    group.connect({group.endpoint(), ""}, watch);
    compute::Floats state(kFloats);
    const std::span<float> buffer = state;
    if (bytes[0] % 8 == 6) group.broadcast(1, {true, false}, {&buffer, 1}, watch);
    for (uint64_t step = 0;; ++step) {
      group.all_reduce(step, Contribution(std::span(&sums, 1)), watch);
      group.note().text();
      if (group.compare()) group.exchange(7, watch);
    }
  } catch (const Unavailable&) {
  }
  return 0;
}
