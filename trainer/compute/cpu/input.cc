#include "trainer/compute/cpu/operation.h"

namespace muster::compute::cpu {
namespace {

// Converts each row straight from the data set's memory, and lists what is not zero on the way.
class InputOperation : public Operation {
 public:
  explicit InputOperation(Context& context) : context_(context), out_(context.values[0]) {}

  void forward(Program& program) override {
    std::vector<Access> accesses{writes(out_.data, Share::rows)};
    if (out_.sparse) accesses.push_back(writes(out_.sparse->values, Share::rows));
    program.add("input", accesses, [this](const Step& step, Member member) { read(step, member); });
    if (!out_.sparse) return;
    program.add("input masks",
                {reads(out_.data, Share::columns), writes(out_.sparse->masks, Share::columns)},
                [this](const Step& step, Member member) {
                  const SparseValue& sparse = *out_.sparse;
                  if (!step.training || !sparse.active) return;
                  context_.kernels.nonzero_masks(
                      step.rows, member.begin(out_.width, kLine), member.end(out_.width, kLine),
                      context_.arena.floats(out_.data), out_.stride, sparse.words,
                      reinterpret_cast<uint32_t*>(context_.arena.integers(sparse.masks)));
                });
  }

  void backward(Program&) override {}

 private:
  void read(const Step& step, Member member) const {
    int64_t nonzeros = 0;
    for (int64_t row = member.begin(step.rows); row < member.end(step.rows); ++row) {
      float* x = context_.arena.floats(out_.data) + row * out_.stride;
      nonzeros += convert(*step.batch, row, x);
      if (out_.sparse && out_.sparse->active) list(row, x);
    }
    if (out_.sparse) {
      context_.arena.integers(out_.sparse->nonzeros)[member.index * kLine] =
          static_cast<int32_t>(nonzeros);
    }
  }

  int64_t convert(const Batch& batch, int64_t row, float* x) const {
    const void* from = batch.features[static_cast<size_t>(row)];
    if (batch.type == ElementType::uint8) {
      return context_.kernels.convert_bytes(out_.width, static_cast<const uint8_t*>(from),
                                            batch.scale, batch.offset, x);
    }
    return context_.kernels.convert_floats(out_.width, static_cast<const float*>(from), batch.scale,
                                           batch.offset, x);
  }

  void list(int64_t row, const float* x) const {
    const SparseValue& sparse = *out_.sparse;
    const int64_t slots = static_cast<int64_t>(sparse.slots.size());
    for (int64_t i = 0; i < slots; ++i) {
      const SparseValue::Slot& slot = sparse.slots[static_cast<size_t>(i)];
      const int64_t at = row * slots + i;
      context_.arena.integers(sparse.counts)[at] =
          context_.kernels.list_nonzero(slot.begin, slot.size, x + slot.begin,
                                        context_.arena.integers(sparse.indices) + at * kSlotEntries,
                                        context_.arena.floats(sparse.values) + at * kSlotEntries);
    }
  }

  Context& context_;
  ValueBlocks& out_;
};

}  // namespace

std::unique_ptr<Operation> make_input(Context& context) {
  return std::make_unique<InputOperation>(context);
}

}  // namespace muster::compute::cpu
