#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/compute/cpu/fusion.h"
#include "trainer/compute/cpu/kernels.h"
#include "trainer/compute/cpu/numbers.h"
#include "trainer/compute/cpu/program.h"
#include "trainer/compute/graph.h"

namespace muster::compute::cpu {

// Rows of an activation start on cache lines; threads own columns in whole lines.
constexpr int64_t kLine = 16;
inline int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// The list of the nonzero elements of an activation. It is kept where a product with the activation
// may be cheaper without the zeros. Each thread lists its share of the columns.
struct SparseValue {
  Block counts, indices, values;  // each thread's part, `*_stride` apart
  int64_t counts_stride = 0, entries_stride = 0;
  Block masks;
  int64_t words = 0;
  Block nonzeros;       // one count a thread, kLine int32 apart
  bool active = false;  // decided between steps

  NonzeroList of(const Arena& arena, TeamThread thread) const {
    return {arena.integers(counts) + thread.index * counts_stride,
            arena.integers(indices) + thread.index * entries_stride,
            arena.floats(values) + thread.index * entries_stride};
  }
};

class NormalizedValue;  // normalized_value.h

// An activation and its gradient in the arena: [max_rows, stride], of which `width` columns are
// used. In planes, each thread's columns lie together in pages of their own. Otherwise hardware
// prefetching would run on from one thread's columns into lines that another thread is about to
// write.
struct ValueBlocks {
  int64_t width = 0;
  int64_t stride = 0;  // numbers from row to row, of the whole or of a plane
  int64_t plane = 0;   // floats from thread to thread; 0: not in planes
  bool needs_gradient = false;
  bool gradient_written = false;  // while the backward program is built: a second writer adds
  bool half = false;              // data and gradient are bfloat16; only of normalized values
  Block data, gradient;
  std::unique_ptr<SparseValue> sparse;
  // Set where `data` holds the raw outputs of a convolution, of which readers compute the value.
  // Only convolutions meet such values.
  std::unique_ptr<NormalizedValue> normalized;
  ValueBlocks();
  ValueBlocks(ValueBlocks&&) noexcept;
  ~ValueBlocks();
};

// The state that all operations of one engine share.
struct Context {
  const Graph& graph;
  const Kernels& kernels;
  Arena& arena;
  int threads = 1;
  int64_t max_rows = 1;
  uint64_t seed = 1;
  std::vector<Fusion> fusions;
  std::vector<ValueBlocks> values;  // by Value::memory

  // Returns the memory of a value of the graph.
  ValueBlocks& value(int index) {
    return values[static_cast<size_t>(graph.values[static_cast<size_t>(index)].memory)];
  }
  // Returns the memory of what a convolution computes: its output, or of a fusion the last one's.
  ValueBlocks& output_of(const Node& convolution);
  // Adds a block of `floats` for each thread; thread i's part begins at i * own_stride(floats).
  Block add_own(int64_t floats) { return arena.add(own_stride(floats) * threads * 4); }
  static int64_t own_stride(int64_t floats) { return round_up(floats, 2 * kLine) + 2 * kLine; }
  // Returns the thread's part of a block that add_own(floats) returned.
  float* own(Block block, int64_t floats, TeamThread thread) const {
    return arena.floats(block) + thread.index * own_stride(floats);
  }
  // Return a sample of a value, which is not in planes.
  Numbers data(const ValueBlocks& value, int64_t sample) const {
    return Numbers{arena.floats(value.data), value.half} + sample * value.stride;
  }
  Numbers gradient(const ValueBlocks& value, int64_t sample) const {
    return Numbers{arena.floats(value.gradient), value.half} + sample * value.stride;
  }
  // Returns the pointer p for which p[row * value.stride + column] is an element of the thread's
  // own columns; of any column, if the value is not in planes.
  float* own_columns(Block block, const ValueBlocks& value, TeamThread thread) const {
    const int64_t shift =
        value.plane == 0 ? 0 : thread.index * value.plane - thread.begin(value.width, kLine);
    return arena.floats(block) + shift;
  }
  // Returns the position in layout().tensors().
  int64_t tensor_index(const std::string& name) const;
  // Returns whether the next writer of this gradient must add to it, and marks it as written.
  bool claim_gradient(ValueBlocks& value) {
    const bool accumulate = value.gradient_written;
    value.gradient_written = true;
    return accumulate;
  }
};

// A node of the graph on this backend. It adds its phases to a program. The phases refer to the
// operation, which outlives the programs.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual void forward(Program& program) = 0;
  virtual void backward(Program& program) = 0;
};

// One file a kind.
std::unique_ptr<Operation> make_operation(const Dense&, const Node& node, Context& context);
std::unique_ptr<Operation> make_operation(const ActivationLayer&, const Node& node,
                                          Context& context);
std::unique_ptr<Operation> make_operation(const Dropout&, const Node& node, Context& context);
std::unique_ptr<Operation> make_operation(const BatchNormalization&, const Node& node,
                                          Context& context);
std::unique_ptr<Operation> make_operation(const Add&, const Node& node, Context& context);
std::unique_ptr<Operation> make_operation(const Concatenate&, const Node& node, Context& context);
std::unique_ptr<Operation> make_operation(const Conv2d&, const Node& node, Context& context);
std::unique_ptr<Operation> make_operation(const DepthwiseConv2d&, const Node& node,
                                          Context& context);
std::unique_ptr<Operation> make_operation(const MaxPool&, const Node& node, Context& context);
std::unique_ptr<Operation> make_operation(const AveragePool&, const Node& node, Context& context);
std::unique_ptr<Operation> make_operation(const GlobalAveragePool&, const Node& node,
                                          Context& context);
std::unique_ptr<Operation> make_operation(const Flatten&, const Node& node, Context& context);
std::unique_ptr<Operation> make_operation(const Reshape&, const Node& node, Context& context);

// Makes the operation that writes the batch's rows as floats to value 0, and lists their nonzero
// elements where another operation needs that list.
std::unique_ptr<Operation> make_input(Context& context);

// Computes the loss of a batch and the gradient of values[graph.output].
class LossOperation : public Operation {
 public:
  // Returns, after a run, the sums of the loss and of its terms, added in row order. The engine
  // adds the other fields.
  virtual LossSums sums(int64_t rows) const = 0;
  // Prepares for the batch of the next run, and returns the number by which its loss and gradients
  // are divided. It is called once before each run, and its result must follow from the batch
  // alone.
  virtual double prepare(const Batch& batch) = 0;
};

// One file a kind.
std::unique_ptr<LossOperation> make_loss(const SoftmaxCrossEntropy&, Context& context);
std::unique_ptr<LossOperation> make_loss(const MeanSquaredError&, Context& context);
std::unique_ptr<LossOperation> make_loss(const Huber& huber, Context& context);
// Throws Invalid where the model's output does not fit the anchors.
std::unique_ptr<LossOperation> make_loss(const SsdLoss& loss, Context& context);

// Counts the nonzero elements in the thread's columns of an activation, and lists them if the list
// is active: for the product and, in training, for the weights' gradient.
void find_nonzeros(const Context& context, const ValueBlocks& value, const Step& step,
                   TeamThread thread);

// Adds accesses to a list.
inline void append(std::vector<Access>& accesses, const std::vector<Access>& more) {
  accesses.insert(accesses.end(), more.begin(), more.end());
}

// These two apply any activation but softmax to a block, with Kernels::bias_* and *_gradient.
void activate(const Kernels& kernels, Activation activation, int64_t rows, int64_t columns,
              float* y, int64_t ldy, const float* bias);
void activation_gradient(const Kernels& kernels, Activation activation, int64_t rows,
                         int64_t columns, const float* y, int64_t ldy, const float* dy, float* dx,
                         bool accumulate);

// Updates a contiguous piece of a tensor from step.gradients, if the step trains.
void update_piece(const Context& context, const Step& step, int64_t tensor, int64_t begin,
                  int64_t end);

}  // namespace muster::compute::cpu
