#include "trainer/ps/transport/seal.h"

#include <grpcpp/support/slice.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "common/digest.h"

namespace muster::ps {

namespace {

uint32_t digest_of(const std::vector<grpc::Slice>& slices) {
  uint32_t crc = 0;
  for (const grpc::Slice& slice : slices)
    crc = crc32c(std::as_bytes(std::span(slice.begin(), slice.size())), crc);
  return crc;
}

}  // namespace

grpc::ByteBuffer sealed(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  message.Dump(&slices);
  const uint32_t crc = digest_of(slices);
  slices.insert(slices.begin(), grpc::Slice(&crc, sizeof crc));
  return {slices.data(), slices.size()};
}

bool unseal(grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (message.Length() < sizeof(uint32_t) || !message.Dump(&slices).ok()) return false;
  uint32_t crc = 0;
  size_t taken = 0;
  for (grpc::Slice& slice : slices) {
    const size_t part = std::min(sizeof crc - taken, slice.size());
    std::memcpy(reinterpret_cast<std::byte*>(&crc) + taken, slice.begin(), part);
    slice = slice.sub(part, slice.size());
    taken += part;
  }
  if (digest_of(slices) != crc) return false;
  message = grpc::ByteBuffer(slices.data(), slices.size());
  return true;
}

}  // namespace muster::ps
