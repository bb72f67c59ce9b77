#pragma once

namespace muster::group {

// The value of the property `provider` of wide AES, by which OpenSSL fetches it.
inline constexpr const char* kWideAes = "wide_aes";

// Makes all TLS 1.3 connections of this process, those of gRPC too, compute AES-GCM with AVX-512,
// by Intel's Multi-Buffer Crypto for IPsec: OpenSSL 3.0 uses the narrower instructions alone, and
// needs more than twice the time. Connections that are made later have it. Returns false, and
// changes nothing, where the processor lacks AVX-512 and VAES, and where OpenSSL's configuration
// asks for FIPS or for another provider. Another call does nothing more.
//
// OpenSSL makes the records, nonces and keys as before; only the cipher differs. It serves TLS 1.3
// alone: nonces have 12 bytes, tags 16, and TLS 1.2 fails.
bool use_wide_aes();

}  // namespace muster::group
