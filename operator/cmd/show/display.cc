#include "operator/cmd/show/display.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/documents/json.h"
#include "common/job/time_use.h"
#include "common/program/output.h"
#include "operator/api/overview.h"
#include "operator/api/status.h"
#include "operator/local/job_directory.h"
#include "operator/local/yaml_text.h"

namespace muster::cmd {

namespace {

using WallClock = std::chrono::system_clock;

constexpr auto kLivePeriod = std::chrono::milliseconds(250);
constexpr auto kPlainPeriod = std::chrono::seconds(5);

// Returns the width without the last column: text in the last column makes some terminals begin a
// new line.
size_t width_of(FILE* out) {
  winsize size{};
  const bool known = ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1U : 79U;
}

std::string clock_text() {
  return fmt::format("{:%H:%M:%S}", fmt::localtime(WallClock::to_time_t(WallClock::now())));
}

// The loss is a string, because JSON has no NaN.
std::string loss_text(const Json& progress) {
  const Json& loss = member(progress, "loss");
  if (loss.is_number()) return fmt::format("{:.6g}", loss.get<double>());
  if (!loss.is_string()) return "";
  const std::string text = loss.get<std::string>();
  try {
    return fmt::format("{:.6g}", std::stod(text));
  } catch (const std::exception&) {
    return text;
  }
}

std::string replicas_line(const api::TrainingJob& job) {
  std::string line;
  for (const auto& [role, spec] : job.replicas) {
    const auto status = job.status.replica_statuses.find(role);
    if (status == job.status.replica_statuses.end()) continue;
    const auto& [ready, active, succeeded, failed, restarts] = status->second;
    line += fmt::format("{}{} {}/{} ready", line.empty() ? "" : "; ", api::role_name(job, role),
                        ready, spec.replicas);
    if (succeeded > 0) line += fmt::format(", {} done", succeeded);
    if (restarts > 0) line += fmt::format(", {} restart{}", restarts, restarts == 1 ? "" : "s");
  }
  return line.empty() ? "starting" : line;
}

bool is_being_evaluated(const api::TrainingJob& job) {
  const auto evaluator = job.status.replica_statuses.find(api::Role::evaluator);
  return job.status.is_true("SuccessCriteriaMet") &&
         evaluator != job.status.replica_statuses.end() && evaluator->second.active > 0;
}

struct Field {
  std::string text;
  int worth;  // fields with the least worth are left out first
};

std::string fit(std::vector<Field> fields, size_t width) {
  const auto length = [&] {
    size_t sum = 0;
    for (const Field& field : fields) sum += field.text.size();
    return sum;
  };
  while (fields.size() > 1 && length() > width) {
    fields.erase(std::ranges::min_element(fields, {}, &Field::worth));
  }
  std::string line;
  for (const Field& field : fields) line += field.text;
  return line.substr(0, width);
}

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string progress_line(const api::TrainingJob& job, const Json& progress, size_t width) {
  const int64_t step = integer_or(progress, "step", 0);
  if (is_being_evaluated(job)) {
    if (step <= 0) return std::string("the evaluator has not finished yet").substr(0, width);
    return fmt::format("trained to step {}; the evaluator looks at the final checkpoint",
                       grouped(step))
        .substr(0, width);
  }
  if (step <= 0) return replicas_line(job).substr(0, width);
  std::vector<Field> fields = {{"step " + grouped(step), 5}};
  if (const int64_t total = integer_or(progress, "totalSteps", 0); total > 0) {
    fields[0].text += "/" + grouped(total);
    fields.push_back({fmt::format(" ({}%)", 100 * step / total), 0});
  }
  if (const std::string loss = loss_text(progress); !loss.empty()) {
    fields.push_back({"  loss " + loss, 3});
  }
  const Json& accuracy = member(member(progress, "metrics"), "accuracy");
  if (accuracy.is_number()) {
    fields.push_back({fmt::format("  accuracy {:.4f}", accuracy.get<double>()), 2});
  }
  const double speed = number_or(progress, "examplesPerSecond", 0);
  if (std::isfinite(speed) && speed > 0 && speed < 1e15) {
    fields.push_back({"  " + grouped(std::llround(speed)) + " examples/s", 1});
  }
  const double left = number_or(progress, "etaSeconds", -1);
  if (left >= 0) fields.push_back({"  " + duration_text(left) + " left", 4});
  return fit(std::move(fields), width);
}

std::string gpus_text(const api::JobStatus& status) {
  if (api::state_word(status) != "Running") return "";
  const auto gibibytes = [](const Json& bytes) {
    return bytes.get<double>() / static_cast<double>(uint64_t{1} << 30);
  };
  std::vector<std::string> gpus;
  for (const Json& gpu : member(status.progress, "gpus")) {
    std::vector<std::string> parts;
    if (const Json& share = member(gpu, "utilization"); share.is_number())
      parts.push_back(fmt::format("{:.0f} %", 100 * share.get<double>()));
    const Json& used = member(gpu, "memoryUsed");
    const Json& memory = member(gpu, "memory");
    if (used.is_number() && memory.is_number())
      parts.push_back(fmt::format("{:.1f} of {:.1f} GiB", gibibytes(used), gibibytes(memory)));
    if (const Json& watts = member(gpu, "watts"); watts.is_number())
      parts.push_back(fmt::format("{:.0f} W", watts.get<double>()));
    if (const Json& celsius = member(gpu, "celsius"); celsius.is_number())
      parts.push_back(fmt::format("{:.0f} °C", celsius.get<double>()));
    if (const int64_t errors = integer_or(gpu, "xidErrors", 0); errors > 0)
      parts.push_back(fmt::format("{} error{}, the newest is Xid {}", errors,
                                  errors == 1 ? "" : "s", integer_or(gpu, "lastXid", 0)));
    if (const int64_t errors = integer_or(gpu, "memoryErrors", 0); errors > 0)
      parts.push_back(fmt::format("{} memory error{}", errors, errors == 1 ? "" : "s"));
    gpus.push_back(parts.empty() ? "unknown" : fmt::format("{}", fmt::join(parts, ", ")));
  }
  return fmt::format("{}", fmt::join(gpus, "; "));
}

std::string straggler_text(const api::TrainingJob& job) {
  constexpr double kSlow = 1.2;
  const Json& metrics = member(job.status.progress, "metrics");
  const auto rank = integer_or(metrics, "stragglerRank", -1);
  const double slowdown = number_or(metrics, "stragglerSlowdown", 0);
  if (api::state_word(job.status) != "Running" || rank < 0 || !(slowdown >= kSlow)) return "";
  const auto chief = job.replicas.find(api::Role::chief);
  const bool led = chief != job.replicas.end() && chief->second.replicas > 0;
  const api::Role role = led && rank == 0 ? api::Role::chief : api::Role::worker;
  const bool input = number_or(metrics, "stragglerInputShare", 0) > 0.5;
  return fmt::format("{}-{} takes {:.1f} times as long as the median member: {}",
                     api::role_name(job, role), led && rank > 0 ? rank - 1 : rank, slowdown,
                     input ? "it waits for its data" : "it computes longer");
}

std::string time_text(const api::JobStatus& status, std::optional<api::Time> now) {
  constexpr size_t kMost = 5;
  constexpr double kLeast = 0.005;
  TimeSpent spent = TimeSpent::of(member(status.goodput, "seconds"));
  const auto until = api::parse_time(string_or(status.goodput, "until", ""));
  const auto use = time_use_of(string_or(status.goodput, "use", ""));
  if (now && until && use && !status.completion_time)
    spent[*use] += std::max(0.0, std::chrono::duration<double>(*now - *until).count());
  const double total = spent.total();
  if (total <= 0) return "";
  std::vector<TimeUseName> uses(time_uses().begin(), time_uses().end());
  std::ranges::stable_sort(uses, std::ranges::greater(),
                           [&](const TimeUseName& use) { return spent[use.use]; });
  std::vector<std::string> parts;
  double rest = 1;
  for (const TimeUseName& use : uses) {
    const double share = spent[use.use] / total;
    if (parts.size() == kMost || share < kLeast) break;
    parts.push_back(fmt::format("{} {:.0f} %", use.name, 100 * share));
    rest -= share;
  }
  if (rest >= kLeast) parts.push_back(fmt::format("other {:.0f} %", 100 * rest));
  return fmt::format("{} of {}", fmt::join(parts, ", "), duration_text(total));
}

std::string conditions_text(const api::JobStatus& status) {
  struct Line {
    std::string types, reason, message;
  };
  std::vector<Line> lines;
  for (const api::Condition& condition : status.conditions) {
    const bool refused = condition.type == "Accepted" && !condition.status;
    if (!condition.status && !refused) continue;
    const std::string type = (refused ? "not " : "") + condition.type;
    const auto same = std::ranges::find_if(lines, [&](const Line& line) {
      return line.reason == condition.reason && line.message == condition.message;
    });
    if (same == lines.end()) {
      lines.push_back({type, condition.reason, condition.message});
    } else {
      same->types += ", " + type;
    }
  }
  std::string text;
  for (const auto& [types, reason, message] : lines) {
    const std::string why = types == reason ? "" : " (" + reason + ")";
    text += "  " + types + why + ": " + message + "\n";
  }
  return text;
}

void print_value(const Json& value, const std::string& output) {
  if (output == "yaml") {
    muster::print(stdout, "{}", local::to_yaml(value));
  } else {
    muster::print(stdout, "{}\n", value.dump(2, ' ', false, Json::error_handler_t::replace));
  }
}

Display::Display(FILE* out)
    : out_(out), terminal_(::isatty(::fileno(out)) == 1), next_(api::steady_time()) {}

Display::~Display() {
  clear();
}

void Display::write(const std::string& text) {
  std::fputs(text.c_str(), out_);
  std::fflush(out_);
}

void Display::clear() {
  if (terminal_ && !line_.empty()) {
    write("\r\033[K");
    line_.clear();
  }
}

void Display::print(const std::string& text) {
  if (text.empty()) return;
  clear();
  write(text + "\n");
  if (terminal_) next_ = std::min(next_, api::steady_time());
}

void Display::event(const plan::Event& event) {
  const bool warning = event.kind == plan::Event::Kind::warning;
  print(clock_text() + (warning ? " warning: " : " ") + event.message);
}

void Display::update(const api::TrainingJob& job, const Json& progress) {
  update([&](size_t width) { return progress_line(job, progress, width); });
}

void Display::update(const std::function<std::string(size_t width)>& line_of) {
  const api::Time now = api::steady_time();
  if (now < next_) return;
  next_ = now + (terminal_ ? std::chrono::milliseconds(kLivePeriod) : kPlainPeriod);
  std::string line = line_of(terminal_ ? width_of(out_) : std::string::npos);
  if (line == line_) return;
  write(terminal_ ? "\r\033[K" + line : clock_text() + " " + line + "\n");
  line_ = std::move(line);
}

}  // namespace muster::cmd
