#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <optional>
#include <span>
#include <string>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/ps/shard/messages.h"
#include "trainer/ps/shard/versions.h"
#include "trainer/spec/training_spec.h"

namespace muster::ps {

// Push and Reply on the wire: a protobuf message with the floats as its last field, so that the
// floats are moved as raw bytes: not copied when sent (bfloat16 is converted into separate memory),
// copied once when received.
using spec::WireType;

// Returns the number of bytes of a float.
constexpr size_t width_of(WireType wire) {
  return wire == WireType::bfloat16 ? 2 : sizeof(float);
}

// Header and floats together stay within 1 MiB, so that a received chunk is copied while it is in
// the caches. Smaller chunks cost more wake-ups than they save.
constexpr size_t kChunkFloats = (1 << 20) / sizeof(float) - 1024;

// Returns a message: the header's bytes, then `values` (aliased; may be empty).
grpc::ByteBuffer encode(const google::protobuf::MessageLite& header, const grpc::Slice& values);

Push to_message(const PushHeader& header);
PushHeader from_message(const Push& message);
Reply to_message(const ReplyHeader& header);
ReplyHeader from_message(const Reply& message);

// A received message with its header read; the floats are copied later to their destination.
template <class Message>
struct Decoded {
  Message header;
  size_t count = 0;    // number of floats
  size_t at_byte = 0;  // where the floats begin
};

// The functions below return nothing if the bytes are not such a message.
std::optional<Decoded<Push>> decode_push(grpc::ByteBuffer& buffer, WireType wire);
std::optional<Decoded<Reply>> decode_reply(grpc::ByteBuffer& buffer, WireType wire);
std::optional<Decoded<Forward>> decode_forward(grpc::ByteBuffer& buffer);
std::optional<Acknowledgement> decode_acknowledgement(grpc::ByteBuffer& buffer);
// Copies the floats that begin at `at_byte`; `to` has exactly `count` of them.
void copy_floats(grpc::ByteBuffer& buffer, size_t at_byte, std::span<float> to, WireType wire);

grpc::Slice to_bfloat16(std::span<const float> values);
// Returns a slice of the lent floats, which keeps the loan as long as gRPC reads it.
grpc::Slice slice_of(Lendable::Loan loan);

}  // namespace muster::ps
