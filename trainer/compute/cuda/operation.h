#pragma once

#include <memory>

#include "trainer/compute/cuda/context.h"

namespace muster::compute::cuda {

// A node of the graph on this backend. The operation adds its requests to the GPU to a program. The
// program refers to the operation, which must outlive it.
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

// Computes the loss of a batch and the gradient of values[graph.output].
class LossOperation {
 public:
  virtual ~LossOperation() = default;
  // Asks for the loss of the rows, after the forward pass.
  virtual void run(const Step& step) = 0;
  // Returns, after the GPU has finished the step of `turn`, the sums of the loss and of its terms,
  // added in row order. The engine adds the other fields.
  virtual LossSums sums(int64_t rows, int turn) const = 0;
  // Prepares for the next run's batch, which has been staged, and returns the number by which the
  // batch's loss and gradients are divided. The result depends on the batch alone.
  virtual double prepare(const Batch& batch) = 0;
  // Whether prepare() waits for the GPU.
  virtual bool waits() const { return false; }
};

// Each kind has its own file.
std::unique_ptr<LossOperation> make_loss(const SoftmaxCrossEntropy&, Context& context);
std::unique_ptr<LossOperation> make_loss(const MeanSquaredError&, Context& context);
std::unique_ptr<LossOperation> make_loss(const Huber& loss, Context& context);
std::unique_ptr<LossOperation> make_loss(const BinaryCrossEntropy& loss, Context& context);
std::unique_ptr<LossOperation> make_loss(const Poisson& loss, Context& context);
std::unique_ptr<LossOperation> make_loss(const Quantile& loss, Context& context);
std::unique_ptr<LossOperation> make_loss(const SsdLoss& loss, Context& context);

}  // namespace muster::compute::cuda
