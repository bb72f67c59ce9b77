#pragma once

#include <grpcpp/support/byte_buffer.h>

namespace muster::ps {

// In plaintext each message between a member and a ps, or between two ps, begins with the CRC-32C
// of the rest of it: TCP's own checksum misses one damaged segment of some 65,000. TLS has a better
// one.

// Returns the message behind its CRC-32C. The memory is that of `message`.
grpc::ByteBuffer sealed(const grpc::ByteBuffer& message);
// Takes the CRC-32C off. Returns false, and leaves the message as it is, if the rest is not what it
// was computed of.
bool unseal(grpc::ByteBuffer& message);

}  // namespace muster::ps
