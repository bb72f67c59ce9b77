#pragma once

namespace muster::group {

// The value of the property `provider` of wide AES, by which OpenSSL fetches it.
inline constexpr const char* kWideAes = "wide_aes";

// Makes all TLS 1.3 connections of this process, also gRPC's, compute AES-GCM with AVX-512, by
// Intel's Multi-Buffer Crypto for IPsec. OpenSSL 3.0 uses only narrower instructions and needs more
// than twice the time. OpenSSL 3.1 and later use the wide instructions themselves, so a build with
// such a version leaves this provider out (CMakeLists.txt), and the function changes nothing. Every
// SSL_CTX made later uses the provider. Returns false, and changes nothing, if the processor or the
// system lacks AVX-512, VAES or related instructions, if the library differs from the one that
// Muster was built with, or if OpenSSL's configuration asks for FIPS, for properties, or for
// another provider. Call this before other threads use OpenSSL; a second call does nothing.
//
// OpenSSL makes the records, nonces and keys as before; only the cipher differs. It serves TLS 1.3
// alone: nonces have 12 bytes and are given with the key or after it, tags have 16, contexts cannot
// be copied. A handshake of TLS 1.2 fails if it has agreed on AES-GCM.
#if defined(MUSTER_WIDE_AES)
bool use_wide_aes();
#else
inline bool use_wide_aes() {
  return false;
}
#endif

}  // namespace muster::group
