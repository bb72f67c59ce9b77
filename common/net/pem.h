#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>

namespace muster {

// An object of OpenSSL, with the function that frees it.
template <class T>
using OpensslHandle = std::unique_ptr<T, void (*)(T*)>;

// Return the first certificate, or the private key, of a text in PEM; null if there is none. A key
// with a passphrase counts as none: nobody is asked for the passphrase.
OpensslHandle<X509> read_certificate(const std::string& pem);
OpensslHandle<EVP_PKEY> read_private_key(const std::string& pem);

}  // namespace muster
