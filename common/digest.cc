#include "common/digest.h"

#include <isa-l/crc.h>
#include <openssl/evp.h>

#include <algorithm>

#include "common/error.h"

namespace muster {

namespace {

EVP_MD_CTX* as_context(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

void require(int openssl_result) {
  if (openssl_result != 1) throw Unavailable("OpenSSL cannot compute SHA-256");
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr || EVP_DigestInit_ex(as_context(context_), EVP_sha256(), nullptr) != 1) {
    EVP_MD_CTX_free(as_context(context_));
    throw Unavailable("OpenSSL cannot compute SHA-256");
  }
}

Sha256::~Sha256() {
  EVP_MD_CTX_free(as_context(context_));
}

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(as_context(context_), bytes.data(), bytes.size()));
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(as_context(context_), digest, &size));
  require(EVP_DigestInit_ex(as_context(context_), EVP_sha256(), nullptr));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

std::string sha256(std::string_view bytes) {
  Sha256 digest;
  digest.update(std::as_bytes(std::span(bytes)));
  return digest.finish();
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  // isa-l leaves the usual inversion before and after to its caller, and has int as the type of the
  // size.
  constexpr size_t kPiece = size_t{1} << 30;
  crc = ~crc;
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kPiece);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(size), crc);
    bytes = bytes.subspan(size);
  }
  return ~crc;
}

}  // namespace muster
