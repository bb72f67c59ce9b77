#pragma once

namespace muster::group {

// The value of the property `provider` of wide AES, by which OpenSSL fetches it.
inline constexpr const char* kWideAes = "wide_aes";

// Makes all TLS 1.3 connections of this process, those of gRPC too, compute AES-GCM with AVX-512,
// by Intel's Multi-Buffer Crypto for IPsec: OpenSSL 3.0 uses the narrower instructions alone, and
// needs more than twice the time. OpenSSL 3.1 and later have the wider ones, so that a build with
// such a version leaves this provider out (CMakeLists.txt), and nothing is changed. Each SSL_CTX
// that is made later has it. Returns false, and changes nothing, where the processor or the system
// lacks AVX-512, VAES and what goes with them, where the library is not the one that Muster was
// built with, and where OpenSSL's configuration asks for FIPS, for properties, or for another
// provider. To be called before other threads use OpenSSL; a later call does nothing more.
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
