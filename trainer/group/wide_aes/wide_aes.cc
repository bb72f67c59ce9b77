#include "trainer/group/wide_aes/wide_aes.h"

// Without this the library's header defines macros with names like SHA1.
#define NO_COMPAT_IMB_API_053
#include <intel-ipsec-mb.h>
#include <openssl/conf.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

namespace muster::group {

namespace {

constexpr size_t kNonce = 12, kTag = 16;  // bytes
constexpr const char* kProperty = "provider=wide_aes";
constexpr const char* kWanted = "?provider=wide_aes";  // preferred, if it exists

// Returns the library, initialized for this processor; null if it has no memory.
IMB_MGR* library() {
  static IMB_MGR* const made = [] {
    IMB_MGR* manager = alloc_mb_mgr(0);
    if (manager != nullptr) init_mb_mgr_auto(manager, nullptr);
    return manager;
  }();
  return made;
}

// Asks the system first, because the library's initialization uses AVX-512 wherever the processor
// has it. Takes no other version of the library, because a later one of the same name has larger
// structures.
bool is_wide_here() {
  constexpr unsigned kPatch = 8;  // number of low bits of a version that may differ
  constexpr uint64_t kNeeded = IMB_CPUFLAGS_AVX512_T2 | IMB_FEATURE_SELF_TEST_PASS;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         imb_get_version() >> kPatch == IMB_VERSION_NUM >> kPatch && library() != nullptr &&
         (library()->features & kNeeded) == kNeeded;
}

// The library's functions for keys of 16 and of 32 bytes.
struct Functions {
  aes_gcm_pre_t expand;
  aes_gcm_init_t begin;
  aes_gcm_enc_dec_update_t encrypt, decrypt;
  aes_gcm_enc_dec_finalize_t end_encryption, end_decryption;
};

template <size_t key_size>
Functions functions() {
  const IMB_MGR& it = *library();
  if constexpr (key_size == 16)
    return {it.gcm128_pre,        it.gcm128_init,         it.gcm128_enc_update,
            it.gcm128_dec_update, it.gcm128_enc_finalize, it.gcm128_dec_finalize};
  return {it.gcm256_pre,        it.gcm256_init,         it.gcm256_enc_update,
          it.gcm256_dec_update, it.gcm256_enc_finalize, it.gcm256_dec_finalize};
}

// A cipher serves one direction of a connection. It takes one message after another: nonce,
// additional data, text and tag, in this order. Functions return false for calls out of order.
class Cipher {
 public:
  explicit Cipher(size_t key_size, const Functions& use) : key_size_(key_size), use_(use) {}
  ~Cipher() {
    OPENSSL_cleanse(&key_, sizeof(key_));
    OPENSSL_cleanse(&message_, sizeof(message_));
  }
  Cipher(const Cipher&) = delete;
  Cipher& operator=(const Cipher&) = delete;

  size_t key_size() const { return key_size_; }

  bool begin(bool encrypts, const unsigned char* key, size_t key_size, const unsigned char* nonce,
             size_t nonce_size) {
    const bool turned = encrypts != encrypts_;
    // A tag to decrypt with may be set before the nonce.
    if (encrypts || turned) has_tag_ = false;
    encrypts_ = encrypts;
    if (key != nullptr || nonce != nullptr || turned) {
      stage_ = Stage::ended;
      additional_.clear();
    }
    if (key != nullptr) {
      if (key_size != key_size_) return false;
      use_.expand(key, &key_);
      has_key_ = true;
    }
    if (nonce == nullptr) return true;
    if (nonce_size != kNonce) return false;
    std::copy_n(nonce, kNonce, nonce_.begin());
    stage_ = Stage::additional;
    return true;
  }

  bool add(const unsigned char* additional, size_t size) {
    if (stage_ != Stage::additional) return false;
    try {
      additional_.insert(additional_.end(), additional, additional + size);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  bool update(unsigned char* out, const unsigned char* in, size_t size) {
    if (in == nullptr || !begin_text()) return false;
    if (size > 0) (encrypts_ ? use_.encrypt : use_.decrypt)(&key_, &message_, out, in, size);
    return true;
  }

  // When decrypting, returns whether the tag equals the tag of set_tag().
  bool end() {
    if (!begin_text()) return false;
    stage_ = Stage::ended;
    std::array<unsigned char, kTag> tag;
    (encrypts_ ? use_.end_encryption : use_.end_decryption)(&key_, &message_, tag.data(), kTag);
    if (!encrypts_ && !has_tag_) return false;
    const bool same = encrypts_ || CRYPTO_memcmp(tag.data(), tag_.data(), kTag) == 0;
    has_tag_ = encrypts_;
    if (encrypts_) tag_ = tag;
    return same;
  }

  bool set_tag(const void* tag, size_t size) {
    if (encrypts_ || size != kTag) return false;
    std::copy_n(static_cast<const unsigned char*>(tag), kTag, tag_.begin());
    has_tag_ = true;
    return true;
  }
  const unsigned char* nonce() const { return nonce_.data(); }
  // Returns the tag of the message that was encrypted last; null if there is none.
  const unsigned char* tag() const { return encrypts_ && has_tag_ ? tag_.data() : nullptr; }

 private:
  enum class Stage { ended, additional, text };  // a nonce is used once

  bool begin_text() {
    if (stage_ == Stage::text) return true;
    if (stage_ == Stage::ended || !has_key_) return false;
    use_.begin(&key_, &message_, nonce_.data(), additional_.data(), additional_.size());
    stage_ = Stage::text;
    return true;
  }

  const size_t key_size_;
  const Functions use_;
  // The library's header does not declare this alignment to its users.
  alignas(64) gcm_key_data key_ = {};
  alignas(64) gcm_context_data message_ = {};
  std::array<unsigned char, kNonce> nonce_ = {};
  std::array<unsigned char, kTag> tag_ = {};
  std::vector<unsigned char> additional_;
  Stage stage_ = Stage::ended;
  bool encrypts_ = true;
  bool has_key_ = false;
  bool has_tag_ = false;
};

// The functions below are those of a provider, as provider-cipher(7) describes them: 1 is success.

Cipher& cipher(void* context) {
  return *static_cast<Cipher*>(context);
}

template <size_t key_size>
void* make(void*) {
  return new (std::nothrow) Cipher(key_size, functions<key_size>());
}

void destroy(void* context) {
  delete static_cast<Cipher*>(context);
}

bool set_size(OSSL_PARAM* parameters, const char* name, size_t value) {
  OSSL_PARAM* found = OSSL_PARAM_locate(parameters, name);
  return found == nullptr || OSSL_PARAM_set_size_t(found, value) == 1;
}

bool set_number(OSSL_PARAM* parameters, const char* name, int value) {
  OSSL_PARAM* found = OSSL_PARAM_locate(parameters, name);
  return found == nullptr || OSSL_PARAM_set_int(found, value) == 1;
}

template <size_t key_size>
int get_parameters(OSSL_PARAM* parameters) {
  OSSL_PARAM* mode = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_MODE);
  if (mode != nullptr && OSSL_PARAM_set_uint(mode, EVP_CIPH_GCM_MODE) != 1) return 0;
  return set_number(parameters, OSSL_CIPHER_PARAM_AEAD, 1) &&
         set_number(parameters, OSSL_CIPHER_PARAM_CUSTOM_IV, 1) &&
         set_size(parameters, OSSL_CIPHER_PARAM_KEYLEN, key_size) &&
         set_size(parameters, OSSL_CIPHER_PARAM_IVLEN, kNonce) &&
         set_size(parameters, OSSL_CIPHER_PARAM_BLOCK_SIZE, 1);
}

// Unknown parameters are refused; otherwise TLS 1.2 would assume that it has a nonce.
int get_of_context(void* context, OSSL_PARAM* parameters) {
  const Cipher& it = cipher(context);
  const auto put = [](OSSL_PARAM* parameter, const unsigned char* bytes, size_t size) {
    return bytes != nullptr && OSSL_PARAM_set_octet_string(parameter, bytes, size) == 1;
  };
  for (OSSL_PARAM* one = parameters; one != nullptr && one->key != nullptr; ++one) {
    const std::string_view name = one->key;
    bool done = false;
    if (name == OSSL_CIPHER_PARAM_KEYLEN) done = OSSL_PARAM_set_size_t(one, it.key_size()) == 1;
    if (name == OSSL_CIPHER_PARAM_IVLEN) done = OSSL_PARAM_set_size_t(one, kNonce) == 1;
    if (name == OSSL_CIPHER_PARAM_AEAD_TAGLEN) done = OSSL_PARAM_set_size_t(one, kTag) == 1;
    if (name == OSSL_CIPHER_PARAM_AEAD_TAG) done = put(one, it.tag(), kTag);
    if (name == OSSL_CIPHER_PARAM_IV || name == OSSL_CIPHER_PARAM_UPDATED_IV)
      done = put(one, it.nonce(), kNonce);
    if (!done) return 0;
  }
  return 1;
}

int set_of_context(void* context, const OSSL_PARAM* parameters) {
  for (const OSSL_PARAM* one = parameters; one != nullptr && one->key != nullptr; ++one) {
    const std::string_view name = one->key;
    size_t size = 0;
    bool done = false;
    if (name == OSSL_CIPHER_PARAM_AEAD_TAG) {
      // Without data, this parameter asks for the size of the tag.
      done = one->data == nullptr ? one->data_size == kTag
                                  : cipher(context).set_tag(one->data, one->data_size);
    }
    if (name == OSSL_CIPHER_PARAM_AEAD_IVLEN)
      done = OSSL_PARAM_get_size_t(one, &size) == 1 && size == kNonce;
    if (name == OSSL_CIPHER_PARAM_KEYLEN)
      done = OSSL_PARAM_get_size_t(one, &size) == 1 && size == cipher(context).key_size();
    if (name == OSSL_CIPHER_PARAM_PADDING) done = true;  // there is no padding
    if (!done) return 0;
  }
  return 1;
}

template <bool encrypts>
int begin(void* context, const unsigned char* key, size_t key_size, const unsigned char* nonce,
          size_t nonce_size, const OSSL_PARAM* parameters) {
  return cipher(context).begin(encrypts, key, key_size, nonce, nonce_size) &&
         set_of_context(context, parameters);
}

int update(void* context, unsigned char* out, size_t* written, size_t space,
           const unsigned char* in, size_t size) {
  *written = size;
  if (out == nullptr) return cipher(context).add(in, size);
  return size <= space && cipher(context).update(out, in, size);
}

int end(void* context, unsigned char*, size_t* written, size_t) {
  *written = 0;
  return cipher(context).end();
}

const OSSL_PARAM* gettable(void*, void*) {
  static const OSSL_PARAM all[] = {
      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, nullptr),
      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, nullptr),
      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_TAGLEN, nullptr),
      OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, nullptr, 0),
      OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_IV, nullptr, 0),
      OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_UPDATED_IV, nullptr, 0),
      OSSL_PARAM_END};
  return all;
}

const OSSL_PARAM* settable(void*, void*) {
  static const OSSL_PARAM all[] = {OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, nullptr),
                                   OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_IVLEN, nullptr),
                                   OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, nullptr, 0),
                                   OSSL_PARAM_uint(OSSL_CIPHER_PARAM_PADDING, nullptr),
                                   OSSL_PARAM_END};
  return all;
}

template <class Function>
OSSL_DISPATCH entry(int id, Function* function) {
  return {id, reinterpret_cast<void (*)()>(function)};
}

template <size_t key_size>
const OSSL_DISPATCH* dispatch() {
  static const OSSL_DISPATCH table[] = {
      entry(OSSL_FUNC_CIPHER_NEWCTX, make<key_size>),
      entry(OSSL_FUNC_CIPHER_FREECTX, destroy),
      entry(OSSL_FUNC_CIPHER_ENCRYPT_INIT, begin<true>),
      entry(OSSL_FUNC_CIPHER_DECRYPT_INIT, begin<false>),
      entry(OSSL_FUNC_CIPHER_UPDATE, update),
      entry(OSSL_FUNC_CIPHER_FINAL, end),
      entry(OSSL_FUNC_CIPHER_GET_PARAMS, get_parameters<key_size>),
      entry(OSSL_FUNC_CIPHER_GET_CTX_PARAMS, get_of_context),
      entry(OSSL_FUNC_CIPHER_SET_CTX_PARAMS, set_of_context),
      entry(OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS, gettable),
      entry(OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS, settable),
      {0, nullptr}};
  return table;
}

const OSSL_ALGORITHM* query(void*, int operation, int* changes) {
  *changes = 0;
  static const OSSL_ALGORITHM ciphers[] = {
      {"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6", kProperty, dispatch<16>(), ""},
      {"AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46", kProperty, dispatch<32>(), ""},
      {nullptr, nullptr, nullptr, nullptr}};
  return operation == OSSL_OP_CIPHER ? ciphers : nullptr;
}

int make_provider(const OSSL_CORE_HANDLE*, const OSSL_DISPATCH*, const OSSL_DISPATCH** out,
                  void** context) {
  static const OSSL_DISPATCH table[] = {entry(OSSL_FUNC_PROVIDER_QUERY_OPERATION, query),
                                        {0, nullptr}};
  static int unused;
  *out = table;
  *context = &unused;
  return 1;
}

// Whether OpenSSL's configuration says which properties algorithms must have. OpenSSL 3.0 cannot
// return such properties, and ours would replace them.
bool has_configured_properties() {
  const std::unique_ptr<char, void (*)(char*)> file(CONF_get1_default_config_file(),
                                                    [](char* text) { OPENSSL_free(text); });
  const std::unique_ptr<CONF, void (*)(CONF*)> read(NCONF_new(nullptr), NCONF_free);
  bool found = false;
  ERR_set_mark();
  if (file && read && NCONF_load(read.get(), file.get(), nullptr) == 1) {
    const auto value = [&](const char* section, const char* name) {
      return NCONF_get_string(read.get(), section, name);
    };
    const char* section = value(nullptr, "openssl_conf");
    const char* algorithms = section == nullptr ? nullptr : value(section, "alg_section");
    found = algorithms != nullptr && (value(algorithms, "default_properties") != nullptr ||
                                      value(algorithms, "fips_mode") != nullptr);
  }
  ERR_pop_to_mark();
  return found;
}

// Whether AES comes from OpenSSL's own provider.
bool is_default() {
  if (EVP_default_properties_is_fips_enabled(nullptr) == 1 || has_configured_properties())
    return false;
  return std::ranges::all_of(std::array{"AES-128-GCM", "AES-256-GCM"}, [](const char* name) {
    const std::unique_ptr<EVP_CIPHER, void (*)(EVP_CIPHER*)> found(
        EVP_CIPHER_fetch(nullptr, name, nullptr), EVP_CIPHER_free);
    return found != nullptr &&
           std::string_view(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(found.get()))) ==
               "default";
  });
}

}  // namespace

bool use_wide_aes() {
  static const bool used = [] {
    if (!is_wide_here() || !is_default()) return false;
    // The last argument keeps the default provider loaded.
    return OSSL_PROVIDER_add_builtin(nullptr, kWideAes, make_provider) == 1 &&
           OSSL_PROVIDER_try_load(nullptr, kWideAes, 1) != nullptr &&
           EVP_set_default_properties(nullptr, kWanted) == 1;
  }();
  return used;
}

}  // namespace muster::group
