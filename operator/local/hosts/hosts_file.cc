#include "operator/local/hosts/hosts_file.h"

#include <map>

#include "common/documents/json.h"
#include "common/documents/problem.h"
#include "common/documents/schema.h"
#include "common/exit_code.h"
#include "common/text/shell_word.h"
#include "embedded/hosts_schema_text.h"

namespace muster::local {

HostsFile load_hosts(const std::filesystem::path& path) {
  static const Json schema = Document::parse(hosts_schema_text, "hosts.schema.yaml").value();
  Document document = Document::load(path);
  require_no_problems(apply_schema(schema, document), kBadInput);
  HostsFile file;
  file.ssh = document.value()["ssh"].get<std::vector<std::string>>();
  file.copy_muster = document.value()["copyMuster"].get<bool>();
  for (const std::string& path : strings_in(member(document.value(), "copy"))) {
    const std::string field = child_path("copy", file.copy.size());
    file.copy.push_back({path, document.locate(field) + ": " + field});
  }
  std::map<std::string, std::string> seen;
  std::vector<Problem> problems;
  for (const Json& entry : document.value()["hosts"]) {
    const std::string field = child_path(child_path("hosts", file.hosts.size()), "name");
    Host host;
    host.name = entry["name"].get<std::string>();
    host.destination = string_or(entry, "ssh", host.name);
    host.address = string_or(entry, "address", host.name);
    host.slots = static_cast<int>(integer_or(entry, "slots", 0));
    host.muster = string_or(document.value(), "muster", "muster");
    const auto [other, is_new] = seen.try_emplace(host.name, document.locate(field));
    if (!is_new) {
      problems.push_back(make_problem(document, field, "names that differ",
                                      "\"" + host.name + "\" again, after " + other->second));
    }
    file.hosts.push_back(std::move(host));
  }
  if (file.copy_muster && given(document.value(), "muster")) {
    problems.push_back(make_problem(document, "muster", "no other muster beside copyMuster: true",
                                    describe(document.value()["muster"])));
  }
  require_no_problems(problems, kBadInput);
  return file;
}

std::vector<std::string> ssh_command(const HostsFile& file, const Host& host) {
  std::vector<std::string> command = file.ssh;
  // ssh takes the first of two options of one name, so that the options in the file win. A
  // connection shared by several replicas would end for all of them when the first one ends.
  for (const char* option : {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=3",
                             "ServerAliveCountMax=3", "ControlPath=none"})
    command.insert(command.end(), {"-o", option});
  command.insert(command.end(), {"-T", host.destination});
  return command;
}

std::vector<std::string> remote_command(const HostsFile& file, const Host& host,
                                        const std::string& action) {
  std::vector<std::string> command = ssh_command(file, host);
  command.push_back(shell_word(host.muster) + " host " + action);
  return command;
}

}  // namespace muster::local
