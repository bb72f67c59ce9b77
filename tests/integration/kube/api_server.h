#pragma once

#include <signal.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/trainer/process.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::integration {

// A Kubernetes API server and its etcd, alone, on ports and in a folder of their own; see
// deploy/cluster/api-server.sh. They end with this, and with the test's process however it ends.
class ApiServer {
 public:
  static constexpr const char* kEtcd = "etcd";
  static constexpr const char* kServer = "kube-apiserver";

  // What a command wrote to stdout and stderr, and its exit code.
  struct Output {
    int code;
    std::string text;
  };

  // Returns when it is ready. Throws std::runtime_error, with the end of its log, if it is not.
  ApiServer();

  // An administrator's.
  std::filesystem::path kubeconfig() const { return folder() / "kubeconfig"; }
  // ca.crt, and the administrator's admin.crt and admin.key.
  std::filesystem::path certificate(const std::string& name) const {
    return folder() / "pki" / name;
  }
  // Such as https://127.0.0.1:20123; the same after a restart.
  const std::string& url() const { return url_; }

  // Each takes kEtcd or kServer. After `kill` it has ended: at once with SIGKILL, within a minute
  // with SIGTERM. `start` starts it again with the same data and does not wait.
  void kill(const std::string& program, int signal = SIGKILL);
  void start(const std::string& program);
  // SIGSTOP and SIGCONT: a server that takes connections and does not answer.
  void signal(const std::string& program, int number) { programs_.at(program)->signal(number); }
  // Until the server answers that it is ready. Throws std::runtime_error as the constructor does.
  void await_ready();

  // Makes etcd forget all but the newest revision, as it does by itself every few minutes.
  void compact();

  Output kubectl(const std::vector<std::string>& arguments, const std::string& input = "") const;

 private:
  const std::filesystem::path& folder() const { return folder_.path(); }
  // Runs a command to its end.
  Output run(std::vector<std::string> command, const std::string& input = "") const;

  test::TemporaryFolder folder_;
  std::string etcd_;
  std::string url_;
  std::map<std::string, std::unique_ptr<Process>> programs_;
};

}  // namespace muster::integration
