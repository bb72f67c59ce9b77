#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace muster::simulation {

// The faults that may happen to a job at one moment, besides the event that would come next anyway.
enum class Fault : char {
  pick = 'p',    // something else that could happen goes first
  kill = 'k',    // a process dies; what it sent last arrives, or some of it does not
  oust = 'o',    // a process stops, is taken for lost, and a successor starts beside it
  pause = 's',   // a process stops
  wake = 'w',    // a stopped one goes on
  cut = 'c',     // a stream breaks, and what is in it is lost
  repeat = 'r',  // a message comes twice
  hold = 'h',    // what is in a stream stays there until the faults are over
  expire = 'e',  // a control call's deadline passes; the request may still arrive
  fail = 'f',    // the next operation on the storage fails
  lose = 'l',    // the storage loses its last rename
  grow = 'g',    // elastic: one worker more
  shrink = 'd',  // elastic: the last worker is asked to leave
  quit = 'q',    // a worker without which the group can do dies, or stops, for good
  part = 't',    // a ps has had no stream to a standby for too long
};

struct Deviation {
  Fault fault = Fault::pick;
  int argument = 0;  // which process, stream or event, modulo how many there are
};

// Deviations from the fair order of events, keyed by the number of the event that they come before.
using Deviations = std::map<int, Deviation>;

std::string text_of(const Deviations& deviations);  // " 12k0 17p3"
// Throws std::invalid_argument if a fault is not `possible`.
Deviations parse_deviations(std::istream& in, std::span<const Fault> possible);

class Draws {
 public:
  explicit Draws(uint64_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }

 private:
  std::mt19937_64 engine_;
};

// Draws fewer than `most` faults, none of them at an event after 30 + `longest`, and changes of the
// order. The first of the possible faults must be Fault::pick.
Deviations random_deviations(Draws& draws, std::span<const Fault> possible, int longest, int most);

// Returns each of the possible faults at each of the first events. `arguments` says how many
// arguments a fault takes.
std::vector<std::pair<int, Deviation>> all_faults(int events,
                                                  const std::map<Fault, int>& arguments);

// Leaves out deviations as long as the rest still fails. Returns false if none could be left out.
bool leave_out(Deviations& failing, const std::function<bool(const Deviations&)>& fails);

// One run of a kind of job. The same schedule always runs the same way. The kind's Setting has:
//   kExample    a schedule as text
//   kFaults     the faults that such a job may meet
//   text()      the setting as text, without a colon
//   read(in)    reads such a text; returns false if it is none
//   smaller()   the settings of smaller jobs that a failure should be looked for in
template <class Setting>
struct Schedule {
  Setting setting;
  Deviations deviations;

  std::string text() const { return setting.text() + ":" + text_of(deviations); }
  // Throws std::invalid_argument.
  static Schedule parse(const std::string& text) {
    Schedule schedule;
    std::istringstream in(text);
    if (char colon = 0; !schedule.setting.read(in) || !(in >> colon) || colon != ':')
      throw std::invalid_argument("expected a schedule like \"" + std::string(Setting::kExample) +
                                  "\", found " + text);
    schedule.deviations = parse_deviations(in, Setting::kFaults);
    return schedule;
  }
};

// Returns what is left of a failing schedule when nothing more can be left out.
template <class Setting>
Schedule<Setting> shrink(Schedule<Setting> failing,
                         const std::function<bool(const Schedule<Setting>&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Setting& setting : failing.setting.smaller())
      if (!smaller && fails({setting, failing.deviations})) {
        failing.setting = setting;
        smaller = true;
      }
    smaller |= leave_out(failing.deviations, [&](const Deviations& fewer) {
      return fails({failing.setting, fewer});
    });
  }
  return failing;
}

}  // namespace muster::simulation
