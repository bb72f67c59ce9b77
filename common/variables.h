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
  starter,     // the person who starts a program by hand; a template may not set it
};

struct Variable {
  std::string_view name;
  Setter setter;
  std::string_view meaning;  // the text in docs/reference/environment.md
};

// Returns every environment variable that tells Muster's programs or a user's program something
// about its job: TF_CONFIG, and all variables whose names begin with MUSTER_. A test finds
// variables that their setter never sets, or that are missing here.
std::span<const Variable> variables();

}  // namespace muster
