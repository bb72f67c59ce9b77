#include "tests/integration/kube/api_server.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

#include "common/documents/document.h"
#include "common/system/file.h"

namespace muster::integration {

namespace {

const std::string kScript = MUSTER_SOURCE_DIR "/deploy/cluster/api-server.sh";
const std::string kKubectl = MUSTER_SOURCE_DIR "/build/tools/kubectl";

// The value of `name` in lines of NAME=VALUE.
std::string value_of(const std::filesystem::path& file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  throw std::runtime_error("expected " + name + "= in " + file.string() + ", found none");
}

}  // namespace

ApiServer::ApiServer() {
  const Output prepared = run({kScript, "prepare", folder()});
  if (prepared.code != 0) throw std::runtime_error(prepared.text);
  etcd_ = value_of(folder() / "addresses.sh", "etcd");
  url_ = value_of(folder() / "addresses.sh", "server");
  start(kEtcd);
  start(kServer);
  await_ready();
}

void ApiServer::start(const std::string& program) {
  const std::vector<std::string> command = {
      "/usr/bin/setpriv", "--pdeathsig", "KILL", kScript, "exec", folder(), program};
  programs_[program] = std::make_unique<Process>(command, std::map<std::string, std::string>{},
                                                 folder() / (program + ".log"), Process::Limits{});
}

void ApiServer::kill(const std::string& program, int signal) {
  Process& process = *programs_.at(program);
  process.signal(signal);
  if (!process.wait(std::chrono::minutes(1)))
    throw std::runtime_error(fmt::format("expected {} to end by signal {}", program, signal));
}

void ApiServer::await_ready() {
  const Output ready = run({kScript, "await", folder()});
  if (ready.code != 0) throw std::runtime_error(ready.text);
}

void ApiServer::compact() {
  const auto post = [this](const std::string& path, const Json& body) {
    const Output answer =
        run({"/usr/bin/curl", "-sSf", "--max-time", "10", etcd_ + path, "-d", body.dump()});
    if (answer.code != 0) throw std::runtime_error(etcd_ + path + ": " + answer.text);
    return Json::parse(answer.text);
  };
  const Json range = post("/v3/kv/range", {{"key", "Lw=="}});  // "/", which nobody has written
  post("/v3/kv/compaction", {{"revision", range.at("header").at("revision")}, {"physical", true}});
}

ApiServer::Output ApiServer::kubectl(const std::vector<std::string>& arguments,
                                     const std::string& input) const {
  std::vector<std::string> command = {kKubectl, "--kubeconfig", kubeconfig(), "--cache-dir",
                                      folder() / "kubectl"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(std::move(command), input);
}

ApiServer::Output ApiServer::run(std::vector<std::string> command, const std::string& input) const {
  const test::TemporaryFolder files;
  write_file_atomically(files.path() / "input", input);
  const std::vector<std::string> shell = {"/bin/sh", "-c", "exec \"$@\" <\"$INPUT\"", "sh"};
  command.insert(command.begin(), shell.begin(), shell.end());
  Process process(command, {{"INPUT", files.path() / "input"}}, files.path() / "output",
                  Process::Limits{});
  const std::optional<int> code = process.wait(std::chrono::minutes(6));
  if (!code) throw std::runtime_error("no end within six minutes: " + command[4]);
  return {*code, read_file(files.path() / "output")};
}

}  // namespace muster::integration
