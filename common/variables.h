#pragma once

#include <span>
#include <string_view>

namespace muster {

// The program or person that sets a variable of a replica's environment.
enum class Setter {
  operators,   // `muster run` and the operator, for each replica
  kubernetes,  // the operator only
  run,         // `muster run` only
  supervisor,  // muster-supervisor, for the trainer that it starts
  user,        // the user, in a template or around a program
  starter,     // whoever starts a program by hand; a template may not set it
};

struct Variable {
  std::string_view name;
  Setter setter;
  std::string_view meaning;  // as docs/environment.md has it
};

// Returns every variable of the environment that tells Muster's programs, or a program of one's
// own, something about its job: all whose names begin with MUSTER_, and TF_CONFIG. A test finds one
// that its setter never sets, or that is in no row.
std::span<const Variable> variables();

}  // namespace muster
