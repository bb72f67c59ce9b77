#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {
namespace {

// Each thread converts its columns of every row straight from the data set's memory, and lists the
// nonzero elements, because dense layers use the same columns again.
class InputOperation : public Operation {
 public:
  explicit InputOperation(Context& context) : context_(context), out_(context.value(0)) {}

  void forward(Program& program) override {
    std::vector<Access> accesses{writes(out_.data, Share::columns)};
    if (out_.sparse) {
      accesses.push_back(writes(out_.sparse->values, Share::columns));
      accesses.push_back(writes(out_.sparse->masks, Share::columns));
    }
    program.add("input", accesses,
                [this](const Step& step, TeamThread thread) { read(step, thread); });
  }

  void backward(Program&) override {}

 private:
  static int64_t element_size(const Batch& batch) {
    return static_cast<int64_t>(bytes_of(batch.type));
  }

  void read(const Step& step, TeamThread thread) const {
    const int64_t begin = thread.begin(out_.width, kLine), end = thread.end(out_.width, kLine);
    prefetch(step, begin, end);
    prefetch_targets(step, thread);
    float* x = context_.own_columns(out_.data, out_, thread);
    for (int64_t row = 0; row < step.rows; ++row) {
      convert(*step.batch, row, begin, end - begin, x + row * out_.stride + begin);
    }
    if (out_.sparse) find_nonzeros(context_, out_, step, thread);
  }

  // Samples can lie anywhere in memory. A prefetch of all samples hides most of the waiting time.
  static void prefetch(const Step& step, int64_t begin, int64_t end) {
    const int64_t size = element_size(*step.batch);
    for (int64_t row = 0; row < step.rows; ++row) {
      const char* from = static_cast<const char*>(step.batch->features[static_cast<size_t>(row)]);
      for (int64_t at = begin * size; at < end * size; at += 64) __builtin_prefetch(from + at);
    }
  }

  // The loss reads the targets of the thread's rows.
  static void prefetch_targets(const Step& step, TeamThread thread) {
    if (step.batch->targets.empty()) return;
    for (int64_t row = thread.begin(step.rows); row < thread.end(step.rows); ++row)
      __builtin_prefetch(step.batch->targets[static_cast<size_t>(row)]);
  }

  void convert(const Batch& batch, int64_t row, int64_t begin, int64_t n, float* x) const {
    const void* from = batch.features[static_cast<size_t>(row)];
    if (batch.type == ElementType::uint8) {
      return context_.kernels.convert_bytes(n, static_cast<const uint8_t*>(from) + begin,
                                            batch.scale, batch.offset, x);
    }
    return context_.kernels.convert_floats(n, static_cast<const float*>(from) + begin, batch.scale,
                                           batch.offset, x);
  }

  Context& context_;
  ValueBlocks& out_;
};

}  // namespace

std::unique_ptr<Operation> make_input(Context& context) {
  return std::make_unique<InputOperation>(context);
}

}  // namespace muster::compute::cpu
