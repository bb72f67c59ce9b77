#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace muster {

// SHA-256 in lower-case hexadecimal, over bytes fed in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::span<const std::byte> bytes);
  std::string finish();

 private:
  void* context_;
};

// Returns the digest of all `bytes` in one call.
std::string sha256(std::string_view bytes);

// CRC-32C (Castagnoli), as TFRecord and our manifests use it. `crc` continues an earlier value.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

}  // namespace muster
