#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/compute/cpu/program/context.h"

namespace muster::compute::cpu {

// A node of the graph on this backend. It adds its phases to a program. The phases refer to the
// operation, which outlives the programs.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual void forward(Program& program) = 0;
  virtual void backward(Program& program) = 0;
};

// Each kind has its own file.
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
// elements if another operation needs this list.
std::unique_ptr<Operation> make_input(Context& context);

// Computes the loss of a batch and the gradient of values[graph.output].
class LossOperation : public Operation {
 public:
  // Returns, after a run, the sums of the loss and of its terms, added in row order. The engine
  // adds the other fields.
  virtual LossSums sums(int64_t rows) const = 0;
  // Prepares for the batch of the next run, and returns the number by which its loss and gradients
  // are divided. It is called once before each run, and its result must depend on the batch alone.
  virtual double prepare(const Batch& batch) = 0;
};

// Each kind has its own file.
std::unique_ptr<LossOperation> make_loss(const SoftmaxCrossEntropy&, Context& context);
std::unique_ptr<LossOperation> make_loss(const MeanSquaredError&, Context& context);
std::unique_ptr<LossOperation> make_loss(const Huber& loss, Context& context);
std::unique_ptr<LossOperation> make_loss(const BinaryCrossEntropy& loss, Context& context);
std::unique_ptr<LossOperation> make_loss(const Poisson& loss, Context& context);
std::unique_ptr<LossOperation> make_loss(const Quantile& loss, Context& context);
// Throws Invalid if the model's output does not fit the anchors.
std::unique_ptr<LossOperation> make_loss(const SsdLoss& loss, Context& context);

// Adds accesses to a list.
inline void append(std::vector<Access>& accesses, const std::vector<Access>& more) {
  accesses.insert(accesses.end(), more.begin(), more.end());
}

}  // namespace muster::compute::cpu
