#include "operator/local/hosts/programs.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <sstream>
#include <system_error>

#include "common/digest.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "common/text/shell_word.h"
#include "operator/local/hosts/each_host.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLacks = "muster-host: lacks";
constexpr const char* kAt = "muster-host: at ";

// A host runs this script with its sh. If the host lacks the files, the script says so and reads
// them as an archive from its standard input; then it prints their folder. Hosts that share the
// folder may run the script at the same time: the first result is used. The programs are started by
// the copied dynamic linker, which uses the copied libraries. The script removes folders that no
// job has used for three months, and unfinished parts of scripts that were killed.
constexpr const char* kScript = R"sh(set -e; umask 022
b="${XDG_CACHE_HOME:-$HOME/.cache}/muster"; d="$b/programs-DIGEST"; mkdir -p "$b"
find "$b" -maxdepth 1 -name "programs.part-*" -mmin +120 -exec rm -rf {} + || :
if [ ! -d "$d" ]; then
p=$(mktemp -d "$b/programs.part-XXXXXX"); trap "rm -rf \"\$p\"" EXIT
mkdir "$p/lib"; echo "muster-host: lacks"; tar -x -o -f - -C "$p/lib"
[ "$(ls "$p/lib" | wc -l)" -eq COUNT ] || { echo "expected COUNT files, found fewer" >&2; exit 1; }
for n in muster muster-trainer; do
printf "#\041/bin/sh\nd=\${0%%/*}\nMUSTER_TRAINER=\$d/muster-trainer exec \"\$d/lib/LINKER\" \
--library-path \"\$d/lib\" \"\$d/lib/$n\" \"\$@\"\n" >"$p/$n"
chmod 755 "$p/$n"
done
sync || :
mv -T "$p" "$d" 2>/dev/null || [ -d "$d" ]
rm -rf "$p"
fi
touch "$d"
find "$b" -maxdepth 1 -name "programs-*" -mtime +90 -exec rm -rf {} + || :
echo "muster-host: at $d")sh";

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
    text.replace(at, word.size(), by);
  return text;
}

// Returns some bytes of a process's output; none at its end.
std::string read_some(const Descriptor& from) {
  std::string bytes(size_t{1} << 16, '\0');
  while (true) {
    pollfd watched{from.get(), POLLIN, 0};
    ::poll(&watched, 1, -1);
    const ssize_t got = ::read(from.get(), bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return bytes;
  }
}

std::string output_of(const std::vector<std::string>& command) {
  Session session(command, Session::Output::pipe);
  session.close_input();
  std::string output, piece;
  while (!(piece = read_some(session.output())).empty()) output += piece;
  if (session.wait() != 0) {
    throw Invalid("copyMuster: expected `" + command[0] + "` to tell which libraries " +
                      command.back() + " needs, found that it failed",
                  kBadConfig);
  }
  return output;
}

std::vector<std::string> archive_command(const Programs& programs) {
  std::vector<std::string> command = {"tar", "-c", "-h", "-f", "-"};
  for (const fs::path& file : programs.files)
    command.insert(command.end(), {"-C", file.parent_path(), file.filename()});
  return command;
}

std::string hear_line(CopyWire& wire) {
  std::string line;
  while (!line.ends_with('\n')) wire.receive(1, [&](std::string_view byte) { line += byte; });
  line.pop_back();
  return line;
}

void send_archive(const Programs& programs, CopyWire& wire) {
  Session archive(archive_command(programs), Session::Output::pipe);
  archive.close_input();
  std::string piece;
  while (!(piece = read_some(archive.output())).empty()) wire.send(piece);
  if (const int code = archive.wait(); code != 0)
    throw Unavailable("tar, of the programs here, has ended with " + std::to_string(code));
}

// Returns whether anything was sent, and sets host.muster to the path of the program.
bool send_to(const Programs& programs, const HostsFile& file, Host& host) {
  std::string script = replaced(kScript, "DIGEST", programs.digest);
  script = replaced(script, "COUNT", std::to_string(programs.files.size()));
  script = replaced(script, "LINKER", programs.files[0].filename());
  std::vector<std::string> command = ssh_command(file, host);
  command.push_back("exec sh -c " + shell_word(script));
  bool sent = false;
  talk_to_host(command, "sh, which takes a copy of muster,", [&](Session& session, CopyWire& wire) {
    while (true) {
      const std::string line = hear_line(wire);  // the host's shell may say something before
      if (const size_t at = line.find(kAt); at != std::string::npos) {
        host.muster = line.substr(at + std::string(kAt).size()) + "/muster";
        return;
      }
      if (!line.ends_with(kLacks)) continue;
      sent = true;
      send_archive(programs, wire);
      session.close_input();
    }
  });
  return sent;
}

// Returns the places of the library in a build and in an installation that exist: one or none.
std::vector<fs::path> tables_library(const fs::path& trainer) {
  std::vector<fs::path> found;
  for (const char* folder : {"lib", "lib/muster"}) {
    const fs::path path = trainer.parent_path().parent_path() / folder / "libmuster_tables.so";
    std::error_code error;
    if (found.empty() && fs::exists(path, error)) found.push_back(path);
  }
  return found;
}

}  // namespace

Programs find_programs(const fs::path& muster, const fs::path& trainer, bool with_tables) {
  if (muster.filename() != "muster" || trainer.filename() != "muster-trainer") {
    throw Invalid("copyMuster: expected programs of the names muster and muster-trainer, found " +
                      muster.string() + " and " + trainer.string(),
                  kBadConfig);
  }
  Programs programs{{""}, ""};
  std::set<fs::path> libraries;
  std::vector<fs::path> own = {muster, trainer};
  if (with_tables)
    for (fs::path& library : tables_library(trainer)) own.push_back(std::move(library));
  for (const fs::path& program : own) {
    // "libc.so.6 => /lib/libc.so.6 (0x7f)", or of the dynamic linker only "/lib/ld.so (0x7f)".
    std::istringstream lines(output_of({"ldd", program}));
    for (std::string line; std::getline(lines, line);) {
      const size_t begin = line.find('/');
      if (begin == std::string::npos) continue;
      const fs::path path = line.substr(begin, line.rfind(" (") - begin);
      if (line.find("=>") == std::string::npos)
        programs.files[0] = path;
      else
        libraries.insert(path);
    }
  }
  if (programs.files[0].empty())
    throw Invalid("copyMuster: expected ldd to name a dynamic linker, found none", kBadConfig);
  programs.files.insert(programs.files.end(), libraries.begin(), libraries.end());
  programs.files.insert(programs.files.end(), own.begin(), own.end());
  std::string digests;
  for (const fs::path& file : programs.files)
    digests += file.filename().string() + " " + sha256(read_file(file)) + "\n";
  programs.digest = sha256(digests);
  return programs;
}

std::vector<std::string> send_programs(const Programs& programs, HostsFile& file,
                                       const std::function<void()>& meanwhile) {
  std::vector<char> sent(file.hosts.size());
  const std::vector<std::string> reasons = for_each_host(
      file.hosts.size(), kCopiesAtOnce,
      [&](size_t i) { sent[i] = send_to(programs, file, file.hosts[i]); }, meanwhile);
  std::vector<std::string> notes;
  std::vector<Host> reached;
  for (size_t i = 0; i < file.hosts.size(); ++i) {
    if (!reasons[i].empty()) {
      notes.push_back(unusable(file.hosts[i], reasons[i]));
      continue;
    }
    if (sent[i]) notes.push_back("copied muster to " + file.hosts[i].name);
    reached.push_back(std::move(file.hosts[i]));
  }
  file.hosts = std::move(reached);
  return notes;
}

}  // namespace muster::local
