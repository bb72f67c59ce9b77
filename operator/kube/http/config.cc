#include "operator/kube/http/config.h"

#include <openssl/evp.h>

#include <vector>

#include "common/documents/document.h"
#include "common/documents/json.h"
#include "common/environment.h"
#include "common/net/host_port.h"
#include "common/system/file.h"

namespace muster::kube {

namespace {

// A kubeconfig, with functions that find its parts and throw errors that say where they are.
class Kubeconfig {
 public:
  explicit Kubeconfig(const std::filesystem::path& path)
      : folder_(std::filesystem::absolute(path).parent_path()), document_(Document::load(path)) {}

  const Json& value() const { return document_.value(); }

  [[noreturn]] void fail(const std::string& path, const std::string& why) const {
    throw Invalid(document_.locate(path) + ": " + path + ": " + why);
  }

  // Returns the entry of the list `list` with this name, and its path.
  std::pair<const Json*, std::string> named(const std::string& list, const std::string& item,
                                            const std::string& name) const {
    const Json& entries = member(value(), list);
    for (size_t i = 0; entries.is_array() && i < entries.size(); ++i) {
      if (string_or(entries[i], "name", "") != name) continue;
      return {&member(entries[i], item), child_path(child_path(list, i), item)};
    }
    fail(list, "expected an entry named '" + name + "', found none");
  }

  // Reads `<field>-data` (base64) or the file `<field>`.
  PemSource source(const Json& object, const std::string& path, const std::string& field) const {
    PemSource source;
    const std::string data = string_or(object, field + "-data", "");
    if (!data.empty()) {
      source.text = decoded(data, child_path(path, field + "-data"));
    } else {
      source.file = file(object, field);
    }
    return source;
  }

  std::filesystem::path file(const Json& object, const std::string& field) const {
    const std::string name = string_or(object, field, "");
    return name.empty() ? std::filesystem::path() : folder_ / name;
  }

  void refuse(const Json& object, const std::string& path, const std::string& field) const {
    const Json& found = member(object, field);
    if (found.is_null() || found == false || found == "") return;
    fail(child_path(path, field), "Muster does not support this");
  }

 private:
  std::string decoded(const std::string& data, const std::string& path) const {
    std::string bytes(data.size() / 4 * 3 + 3, '\0');
    const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                     reinterpret_cast<const unsigned char*>(data.data()),
                                     static_cast<int>(data.size()));
    if (size < 0) fail(path, "expected base64");
    size_t padding = 0;
    while (padding < 2 && padding < data.size() && data[data.size() - 1 - padding] == '=') {
      ++padding;
    }
    bytes.resize(static_cast<size_t>(size) - padding);
    return bytes;
  }

  const std::filesystem::path folder_;
  const Document document_;
};

void read_cluster(const Kubeconfig& file, const std::string& name, Config& config) {
  const auto [cluster, path] = file.named("clusters", "cluster", name);
  for (const char* field : {"insecure-skip-tls-verify", "proxy-url"}) {
    file.refuse(*cluster, path, field);
  }
  config.server = string_or(*cluster, "server", "");
  if (config.server.empty()) file.fail(path, "expected a server");
  config.tls_server_name = string_or(*cluster, "tls-server-name", "");
  config.authority = file.source(*cluster, path, "certificate-authority");
}

void read_user(const Kubeconfig& file, const std::string& name, Config& config) {
  const auto [user, path] = file.named("users", "user", name);
  for (const char* field : {"exec", "auth-provider", "username", "password", "as"}) {
    file.refuse(*user, path, field);
  }
  config.certificate = file.source(*user, path, "client-certificate");
  config.key = file.source(*user, path, "client-key");
  if (config.certificate.empty() != config.key.empty()) {
    file.fail(path, "expected both of client-certificate and client-key, or none");
  }
  config.token.file = file.file(*user, "tokenFile");
  if (config.token.file.empty()) config.token.text = string_or(*user, "token", "");
}

}  // namespace

Config load_kubeconfig(const std::filesystem::path& path, const std::string& context) {
  const Kubeconfig file(path);
  const std::string name =
      context.empty() ? string_or(file.value(), "current-context", "") : context;
  if (name.empty()) file.fail("current-context", "expected a context, found none");
  const auto [chosen, chosen_path] = file.named("contexts", "context", name);
  Config config;
  read_cluster(file, string_or(*chosen, "cluster", ""), config);
  const std::string user = string_or(*chosen, "user", "");
  if (!user.empty()) read_user(file, user, config);
  config.name_space = string_or(*chosen, "namespace", "default");
  return config;
}

Config in_cluster_config(const std::filesystem::path& account) {
  const std::string host = environment_variable("KUBERNETES_SERVICE_HOST");
  const std::string port = environment_variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    throw Invalid(
        "expected KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, which every pod has");
  }
  Config config;
  config.server = "https://" + join_host_port(host, port);
  config.authority.file = account / "ca.crt";
  config.token.file = account / "token";
  config.name_space = read_file(account / "namespace");
  return config;
}

Config find_config(const std::filesystem::path& kubeconfig, const std::string& context) {
  if (!kubeconfig.empty()) return load_kubeconfig(kubeconfig, context);
  const std::string named = environment_variable("KUBECONFIG");
  if (named.find(':') != std::string::npos) {
    throw Invalid("KUBECONFIG: expected one file, found several: '" + named + "'");
  }
  if (!named.empty()) return load_kubeconfig(named, context);
  if (!environment_variable("KUBERNETES_SERVICE_HOST").empty()) return in_cluster_config();
  const std::filesystem::path usual =
      std::filesystem::path(environment_variable("HOME")) / ".kube" / "config";
  if (!is_there(usual)) {
    throw Invalid("expected a kubeconfig as --kubeconfig, KUBECONFIG or " + usual.string() +
                  ", or a pod's service account; found none of them");
  }
  return load_kubeconfig(usual, context);
}

}  // namespace muster::kube
