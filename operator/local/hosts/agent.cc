#include "operator/local/hosts/agent.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "common/system/file.h"
#include "common/system/signals.h"
#include "common/threads/cpu_budget.h"
#include "operator/local/copy/copy_receiver.h"
#include "operator/local/hosts/protocol.h"
#include "operator/local/processes/ports.h"
#include "operator/local/processes/process.h"
#include "operator/local/processes/surroundings.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestRequest = size_t{8} << 20;
constexpr size_t kPorts = 512;

// Reads up to the end of the line and not further, because the bytes after it have another meaning.
std::string read_request() {
  std::string line;
  char byte = 0;
  while (line.size() < kLongestRequest) {
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (byte == '\n') return line;
    line += byte;
  }
  throw Invalid("muster host: expected a line of JSON of less than " +
                std::to_string(kLongestRequest) + " bytes, found " + std::to_string(line.size()) +
                " bytes without an end of line");
}

std::string problem_of(const SurveyRequest& request, const fs::path& trainer) {
  std::string found = "none";
  try {
    const fs::path file = fs::path(request.folder) / request.file;
    if (is_there(file)) found = "another file of that name";
    if (is_there(file) && read_file(file) == request.content) found.clear();
  } catch (const std::runtime_error& error) {
    found = error.what();
  }
  if (!found.empty()) {
    return "expected the job's directory " + request.folder +
           " to be shared with this host, and in it the file " + request.file +
           " that was just written; found " + found;
  }
  if (!is_port_free(0, request.address.c_str()))
    return "expected " + request.address + " to be an address of this host, found that it is not";
  for (const std::string& folder : request.folders) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
      return "expected the folder " + folder + " on this host too, found none";
  }
  if (request.trainer && trainer.empty())
    return "expected muster-trainer beside muster, or on PATH; found none";
  return "";
}

// Returns the bytes that arrived; nothing at the end of the input.
std::optional<std::string> read_orders() {
  char bytes[256];
  const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (got < 0)
    return errno == EINTR || errno == EAGAIN ? std::optional(std::string()) : std::nullopt;
  if (got == 0) return std::nullopt;
  return std::string(bytes, static_cast<size_t>(got));
}

int wait_for(Process& process) {
  pollfd ended{process.descriptor(), POLLIN, 0};
  while (true) {
    if (const std::optional<int> code = process.collect()) return *code;
    ::poll(&ended, 1, -1);
  }
}

// Returns the exit code of the process; nothing if the other end has gone or this process should
// end.
std::optional<int> follow_orders(Process& process, const Descriptor& signals) {
  pollfd watched[] = {
      {STDIN_FILENO, POLLIN, 0}, {process.descriptor(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
  while (true) {
    if (const std::optional<int> code = process.collect()) return code;
    constexpr std::chrono::milliseconds kMost = kPatience;
    const int ready = ::poll(watched, 3, static_cast<int>(kMost.count()));
    if (ready == 0 || (ready > 0 && watched[2].revents != 0)) return std::nullopt;
    if (ready < 0 || watched[0].revents == 0) continue;
    const std::optional<std::string> orders = read_orders();
    if (!orders) return std::nullopt;
    if (orders->find(kTerminate) == std::string::npos) continue;
    process.signal(SIGTERM);
    process.signal(SIGCONT);  // a stopped process gets no other signal
  }
}

void report(const std::string& words) {
  std::fprintf(stderr, "%s%s\n", kReport, words.c_str());
}

}  // namespace

int answer_survey(const fs::path& trainer) {
  const SurveyRequest request = parse_survey_request(read_request());
  HostFacts facts;
  facts.cpus = cpu_budget();
  facts.gpus = gpus_here();
  facts.ports = free_ports(kPorts);
  facts.problem = problem_of(request, trainer);
  print(stdout, "{}", to_line(to_json(facts)));
  return kSuccess;
}

int run_for_another_host(const fs::path& trainer) {
  const Descriptor signals = watch_signals({SIGINT, SIGTERM, SIGHUP});
  try {
    const HostRequest request = parse_host_request(read_request());
    Launch launch;
    launch.command = request.command;
    if (launch.command[0] == kTrainer) launch.command[0] = trainer.string();
    launch.environment = inherited_environment();
    for (const auto& [name, value] : request.environment)
      set_variable(launch.environment, name, value, /*overwrite=*/true);
    launch.directory = request.directory;
    Process process(launch);
    report("started");
    std::optional<int> code = follow_orders(process, signals);
    if (!code) {
      process.signal(SIGKILL);
      code = wait_for(process);
    }
    report("exit " + std::to_string(*code));
  } catch (const std::exception& error) {
    report(std::string("problem ") + error.what());
  }
  return kSuccess;
}

int receive_copies_here() {
  ::signal(SIGPIPE, SIG_IGN);
  CopyWire wire(STDIN_FILENO, STDOUT_FILENO, CopyWire::kPatienceOfHost);
  receive_copies(wire);
  return kSuccess;
}

}  // namespace muster::local
