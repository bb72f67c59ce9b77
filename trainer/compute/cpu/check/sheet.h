#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/host/arithmetic.h"

namespace muster::compute::cpu {

// The shape of a question.
struct Extent {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t padding = 0;  // floats from a row's end to the next one's begin
  bool accumulate = false;
};

// The shape of a question, and the tables that answer it.
struct Asked {
  const Kernels& kernels;
  const host::Arithmetic& arithmetic;
  int64_t lanes = 1;  // a number of columns that stands for a whole vector in all tables compared
  Extent extent;
};

// All memory that a question uses: what a kernel reads and what it writes. So a write to a wrong
// place is found too.
class Sheet {
 public:
  explicit Sheet(const Asked& asked) : asked_(asked) {}

  const Kernels& kernels() const { return asked_.kernels; }
  const host::Arithmetic& arithmetic() const { return asked_.arithmetic; }
  int64_t lanes() const { return asked_.lanes; }
  int64_t rows() const { return asked_.extent.rows; }
  int64_t columns() const { return asked_.extent.columns; }
  int64_t ld() const { return columns() + asked_.extent.padding; }
  bool accumulate() const { return asked_.extent.accumulate; }

  // Each function returns a new array of n numbers, with some more after them. The numbers of
  // floats() are multiples of 1/8 from -2 to 2, so that products, and sums of a few, need no
  // rounding.
  float* floats(int64_t n);
  float* positive(int64_t n);      // from 1/8 to 2 and 1/8
  float* mostly_zeros(int64_t n);  // at least 0
  float* thirds(int64_t n);        // a third of each number of floats(), which bfloat16 must round
  // The numbers of floats() as bfloat16: n of them, or n pairs.
  uint16_t* halves(int64_t n);
  float* pairs(int64_t n) { return reinterpret_cast<float*>(halves(2 * n)); }
  uint32_t* words(int64_t n);  // zeros
  float* matrix() { return floats(rows() * ld()); }
  float* row() { return floats(columns()); }
  // Keeps a number that a kernel has returned.
  void tell(double number);

  // Returns the first difference between two sheets of the same question, for example "expected 2,
  // found 3"; "" if there is none. Rounding may differ by 1/10,000, and in bfloat16 by a unit in
  // the last place.
  static std::string difference(const Sheet& expected, const Sheet& found);

 private:
  enum class Kind { number, half, word };
  struct Block {
    Kind kind;
    std::vector<std::byte> bytes;
  };
  template <typename Number, typename Make>
  Number* add(Kind kind, int64_t n, Make make);

  Asked asked_;
  std::vector<Block> blocks_;
};

}  // namespace muster::compute::cpu
