#pragma once

#include <grpcpp/support/byte_buffer.h>

namespace muster::ps {

// In plaintext each message between a member and a ps, or between two ps, begins with the CRC-32C
// of the rest of the message, because TCP's checksum misses about one of 65,000 damaged segments.
// TLS has a better checksum.

// Returns the message with its CRC-32C in front. It shares the memory of `message`.
grpc::ByteBuffer sealed(const grpc::ByteBuffer& message);
// Removes the CRC-32C. Returns false, and does not change the message, if the CRC-32C is wrong.
bool unseal(grpc::ByteBuffer& message);

}  // namespace muster::ps
