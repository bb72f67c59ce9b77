#pragma once

#include <string>
#include <vector>

namespace muster::host {

// The sets of vector instructions that the inner loops are compiled for, each from the same source.
// avx512_bf16 is avx512 with products of bfloat16; everything else has the same bits.
enum class InstructionSet { generic, avx2, avx512, avx512_bf16 };

const char* name_of(InstructionSet set);

// Returns the sets that this CPU has, the best one last.
std::vector<InstructionSet> instruction_sets();

// Returns the best set that this CPU has, or the one that the environment variable
// MUSTER_INSTRUCTION_SET names ("avx512_bf16", "avx512", "avx2", "generic"). Throws Invalid if the
// CPU does not have it.
InstructionSet instruction_set();
// Does the same with `name` instead of the variable; empty: the best set.
InstructionSet instruction_set(const std::string& name);

// Whether instruction_set() rounds only once when it adds a product to a sum. All sets except the
// generic one do, so their updates have the same bits.
bool fuses();

// Flushes subnormal numbers to zero in this thread while an object of this class lives. They are
// slow and have no use here.
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
