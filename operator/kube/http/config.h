#pragma once

#include <filesystem>
#include <string>

namespace muster::kube {

// A secret or certificate: as text, or in a file that is read again because it may be rotated.
struct PemSource {
  std::string text;
  std::filesystem::path file;
  bool empty() const { return text.empty() && file.empty(); }
};

// The address of an API server, and the identity to use there.
struct Config {
  std::string server;           // "https://host:port[/prefix]"
  std::string tls_server_name;  // the name expected in the server's certificate; empty: the host
  PemSource authority;          // CA; empty: the system's CAs
  PemSource certificate, key;   // the client's; may be empty
  PemSource token;              // may be empty
  std::string name_space = "default";
};

// Reads a kubeconfig's current context, or `context`. Relative paths count from its folder. Throws
// Invalid, naming file and field, if something is missing or not supported by Muster: exec and
// auth-provider plug-ins, proxy-url, username and password, insecure-skip-tls-verify,
// impersonation.
Config load_kubeconfig(const std::filesystem::path& path, const std::string& context = {});

// Reads a pod's service account in the folder `account`. Throws Invalid if this process does not
// run in a pod.
Config in_cluster_config(
    const std::filesystem::path& account = "/var/run/secrets/kubernetes.io/serviceaccount");

// Reads `kubeconfig` if given, else $KUBECONFIG if set, else a pod's service account, else
// ~/.kube/config.
Config find_config(const std::filesystem::path& kubeconfig = {}, const std::string& context = {});

}  // namespace muster::kube
