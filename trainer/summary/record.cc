#include "trainer/summary/record.h"

#include "common/digest.h"

namespace muster::summary {
namespace {

template <typename Integer>
void append(std::string& out, Integer value) {
  for (size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t masked_crc(std::string_view bytes) {
  return mask_crc(crc32c(std::as_bytes(std::span(bytes))));
}

}  // namespace

uint32_t mask_crc(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::string frame_record(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + 16);
  append(out, static_cast<uint64_t>(bytes.size()));
  append(out, masked_crc(out));
  out += bytes;
  append(out, masked_crc(bytes));
  return out;
}

}  // namespace muster::summary
