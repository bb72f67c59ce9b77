#include "trainer/records/framing.h"

#include "common/digest.h"

namespace muster::records {
namespace {

template <typename Integer>
void append(std::string& out, Integer value) {
  for (size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

template <typename Integer>
Integer read(const char* bytes) {
  Integer value = 0;
  for (size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<Integer>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
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
  out.reserve(kHeaderBytes + bytes.size() + kFooterBytes);
  append(out, static_cast<uint64_t>(bytes.size()));
  append(out, masked_crc(out));
  out += bytes;
  append(out, masked_crc(bytes));
  return out;
}

std::optional<uint64_t> length_of(std::span<const char, kHeaderBytes> header) {
  const std::string_view length(header.data(), sizeof(uint64_t));
  if (masked_crc(length) != read<uint32_t>(header.data() + length.size())) return std::nullopt;
  return read<uint64_t>(length.data());
}

bool footer_fits(std::string_view bytes, std::span<const char, kFooterBytes> footer) {
  return masked_crc(bytes) == read<uint32_t>(footer.data());
}

}  // namespace muster::records
