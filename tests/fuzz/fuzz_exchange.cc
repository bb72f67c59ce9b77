#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/error.h"
#include "trainer/ps/shard/shard.h"
#include "trainer/ps/transport/shared_memory.h"
#include "trainer/ps/transport/wire.h"

using namespace muster;

namespace {

constexpr size_t kFloats = 4;

// The bytes in pieces of `length`, as a connection may deliver them.
grpc::ByteBuffer buffer_of(const uint8_t* bytes, size_t size, size_t length) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < size; at += length)
    slices.emplace_back(bytes + at, std::min(length, size - at));
  return {slices.data(), slices.size()};
}

template <class Decode>
void read_message(grpc::ByteBuffer& buffer, ps::WireType wire, Decode decode) {
  const auto decoded = decode(buffer, wire);
  if (!decoded) return;
  if (decoded->at_byte + decoded->count * ps::width_of(wire) > buffer.Length()) __builtin_trap();
  std::vector<float> values(decoded->count);
  if (!values.empty()) ps::copy_floats(buffer, decoded->at_byte, values, wire);
  ps::from_message(decoded->header);
}

// What goes to a second copy. The floats lie where the message says; of how many there are in all
// its chunks only FollowStream judges, by the shard.
void read_forward(grpc::ByteBuffer& buffer) {
  const auto decoded = ps::decode_forward(buffer);
  if (!decoded) return;
  if (decoded->at_byte + decoded->count * sizeof(float) > buffer.Length()) __builtin_trap();
  std::vector<float> values(decoded->count);
  if (!values.empty()) ps::copy_floats(buffer, decoded->at_byte, values, ps::WireType::float32);
}

// A shard between two members that send whatever these blocks say.
void drive_shard(const uint8_t* bytes, size_t size) {
  compute::ParameterTensor tensor;
  tensor.name = "w";
  tensor.shape = {kFloats};
  tensor.count = kFloats;
  const compute::ParameterLayout layout({tensor});
  const auto optimizer = compute::Optimizer::create(compute::Sgd{}, layout);
  const compute::Schedule schedule;
  ps::Shard::Shape shape;
  shape.range = {0, kFloats};
  // Three bits are for the policy, so that another one moves none of the others.
  shape.policy = static_cast<spec::SyncPolicy>(bytes[0] % 8 % 3);
  shape.backup_workers = bytes[0] / 8 % 2;
  shape.shards = 1 + bytes[0] / 16 % 2;
  shape.shard = bytes[0] / 32 % shape.shards;
  ps::Shard shard(shape, *optimizer, schedule);
  ps::Shard::Content content;
  content.parameters.resize(kFloats);
  shard.load(std::move(content));
  ps::Shard::Answers answers;
  shard.begin(1, 2, ps::Tickets(0, 8, {}), answers);
  const std::vector<float> gradients(kFloats, 1.0f);
  ps::RequestBlock block;
  for (size_t at = 1; at + sizeof block <= size; at += sizeof block) {
    std::memcpy(&block, bytes + at, sizeof block);
    const uint64_t session = block.flags >> 2 & 3;
    const auto header = ps::from_block(block);
    if (!header) continue;
    if ((block.flags & 16) != 0)
      shard.detach(session, answers);
    else if (header->pull)
      shard.pull(session, *header, answers);
    else
      shard.push(session, *header, {gradients, {}}, answers);
  }
  for (const auto& answer : answers)
    if (answer.header.status == ps::Status::ok && answer.header.generation != 1) __builtin_trap();
}

// What a stranger offers is refused, and nothing else happens.
void consider_offer(const uint8_t* bytes, size_t size) {
  SharedMemoryOffer offer;
  if (!offer.ParseFromArray(bytes, static_cast<int>(size))) return;
  try {
    const ps::OfferedMemory memory(offer, {kFloats, 1});
    __builtin_trap();
  } catch (const Invalid&) {
  }
}

}  // namespace

// What a member or a ps may be sent: messages of the exchange and between second copies, requests
// and replies in shared memory, and offers of such memory.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size < 3) return 0;
  const uint8_t what = *bytes++;
  const size_t length = 1 + *bytes++;
  size -= 2;
  const auto wire = (what & 4) != 0 ? ps::WireType::bfloat16 : ps::WireType::float32;
  grpc::ByteBuffer buffer = buffer_of(bytes, size, length);
  switch (what >> 6 == 3 ? 4 + what % 2 : what % 4) {
    case 0:
      read_message(buffer, wire, ps::decode_push);
      break;
    case 1:
      read_message(buffer, wire, ps::decode_reply);
      break;
    case 2:
      drive_shard(bytes, size);
      break;
    case 4:
      read_forward(buffer);
      break;
    case 5:
      ps::decode_acknowledgement(buffer);
      break;
    default:
      if (size >= sizeof(ps::ReplyBlock)) {
        ps::ReplyBlock block;
        std::memcpy(&block, bytes, sizeof block);
        if (ps::from_block(block).message.size() > sizeof block.message) __builtin_trap();
      }
      consider_offer(bytes, size);
  }
  return 0;
}
