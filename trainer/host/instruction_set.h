#pragma once

#include <string>
#include <vector>

namespace muster::host {

// The vector instructions that inner loops are compiled for, each from the same source.
enum class InstructionSet { generic, avx2, avx512 };

const char* name_of(InstructionSet set);

// The sets that this CPU has, the best one last.
std::vector<InstructionSet> instruction_sets();

// The best one that this CPU has, or the one that the environment variable MUSTER_INSTRUCTION_SET
// names ("avx512", "avx2", "generic"). Throws Invalid where the CPU does not have it.
InstructionSet instruction_set();
// The same with `name` in place of the variable; empty: the best one.
InstructionSet instruction_set(const std::string& name);

// Subnormal numbers are slow and mean nothing here: they are flushed to zero in this thread while
// an object of this class lives.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned int saved_ = 0;
};

}  // namespace muster::host
