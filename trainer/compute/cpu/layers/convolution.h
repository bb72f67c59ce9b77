#pragma once

#include <optional>
#include <string>

#include "trainer/compute/cpu/layers/sliding.h"
#include "trainer/compute/cpu/program/normalized_value.h"
#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {

// A convolution by products of matrices, which the subclasses define. Forward, threads share the
// rows of the output of all samples; backward, they share the samples.
class ConvolutionOperation : public Operation {
 public:
  struct Kind {
    bool single = false;  // the window has one place and moves by one
    // [channels, filters] that rearrange() writes; 0: one for each place of the window
    int64_t matrices = 0;
    int64_t lines = 1;  // a thread begins with an output row that is a multiple of `lines`
  };
  ConvolutionOperation(const Conv2d& layer, const Node& node, Context& context, const Kind& kind);

  void forward(Program& program) override;
  void backward(Program& program) override;

 protected:
  // Computes the products of some rows of a sample's output. It calls finish() for each stretch of
  // places that is complete.
  virtual void forward_lines(const Step& step, TeamThread thread, const Lines& lines) const = 0;
  // Returns the accesses of forward_lines() besides its input.
  virtual std::vector<Access> more_accesses() const { return {}; }
  // Rearranges a thread's part of the kernel for backward_samples(), into rearranged.
  virtual void rearrange(const Step& step, TeamThread thread) const = 0;
  // Computes the part of the weights' gradient (if needed) from samples [begin, end), and the
  // gradient of their input (if needed). With `accumulate`, the input's gradient is added to its
  // present content. It calls finish_gradient() once for each place of the input's gradient.
  virtual void backward_samples(TeamThread thread, int64_t begin, int64_t end,
                                bool accumulate) const = 0;

  // Ends the writing of `places` places of the output at `to`; `y` is the result of begin_write().
  // Adds the bias and applies the activation, or adds up the statistics.
  void finish(const Step& step, TeamThread thread, Numbers to, float* y, int64_t places) const;
  // Ends the writing of `places` places of the input's gradient in the same way, and adds up the
  // gradient's sums if `sums` is set; `x` is the input at these places.
  void finish_gradient(TeamThread thread, Numbers x, Numbers to, const float* dx,
                       int64_t places) const;
  // Writes the gradient of the raw output at places [begin, end) of a sample to `to`.
  void output_gradient(int64_t sample, int64_t begin, int64_t end, float* to) const;
  // Adds rows of the raw output's gradient, filters floats each, to the bias's gradient.
  void bias_gradient(TeamThread thread, const float* dy, int64_t rows) const;

  const std::string name;
  Context& context;
  const Kernels& kernels;
  ValueBlocks& in;
  ValueBlocks& out;
  const Sliding sliding;
  const Activation activation;
  const int64_t filters, depth;  // depth: floats under the window
  const int64_t kernel, bias;    // positions in the layout
  size_t kernel_offset = 0, bias_offset = 0;
  Block rearranged;  // Kind::matrices
  std::optional<WeightGradient> weights;
  bool sums = false;  // whether this operation adds up the sums of its input
  // Whether the operation treats all samples as the rows of one sample.
  const bool joined;
  const int64_t lines_at_once;  // Kind::lines

 private:
  void run_forward(const Step& step, TeamThread thread) const;
  void run_backward(const Step& step, TeamThread thread, bool accumulate) const;
};

// Makes a convolution by patches (the parts of the image under the window); a tile of patches is a
// matrix. A convolution of single places reads the image itself.
std::unique_ptr<Operation> make_patch_convolution(const Conv2d& layer, const Node& node,
                                                  Context& context);
// Makes a convolution without patches, for strides of 1.
std::unique_ptr<Operation> make_unit_convolution(const Conv2d& layer, const Node& node,
                                                 Context& context);
// Makes a convolution with fewer products than terms, for shapes for which suits_winograd() returns
// true.
std::unique_ptr<Operation> make_winograd_convolution(const Conv2d& layer, const Node& node,
                                                     Context& context);
bool suits_winograd(const Sliding& sliding, int64_t filters);

}  // namespace muster::compute::cpu
