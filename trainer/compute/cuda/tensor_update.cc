#include "trainer/compute/cuda/tensor_update.h"

#include <algorithm>

#include "trainer/compute/tensor_ratios.h"

namespace muster::compute::cuda {
namespace {

std::vector<TensorPiece> pieces_of(const ParameterLayout& layout, Range range, Segment segment) {
  std::vector<TensorPiece> pieces;
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const ParameterTensor& tensor = layout.tensors()[i];
    if (tensor.segment != segment) continue;
    const size_t first = std::max(tensor.range().begin, range.begin);
    const size_t end = std::min(tensor.range().end, range.end);
    for (size_t begin = first; begin < end; begin += TensorRatios::kChunk)
      pieces.push_back({static_cast<int64_t>(begin),
                        static_cast<int64_t>(std::min(end, begin + TensorRatios::kChunk)),
                        static_cast<int64_t>(i)});
  }
  return pieces;
}

int64_t count(const auto& values) {
  return static_cast<int64_t>(values.size());
}

}  // namespace

TensorUpdate::TensorUpdate(Gpu& gpu, const ParameterLayout& layout, Range range)
    : gpu_(gpu),
      layout_(layout),
      pieces_(pieces_of(layout, range, Segment::trainable)),
      trainable_(count(pieces_)),
      state_begin_(std::ranges::count_if(
          layout.tensors(), [](const auto& t) { return t.segment != Segment::state; })),
      gpu_pieces_(gpu, trainable_ + count(pieces_of(layout, range, Segment::state))),
      rules_(gpu, 2 * count(layout.tensors())),
      gpu_rules_(gpu, count(layout.tensors())),
      squares_(gpu, 2 * trainable_),
      gpu_squares_(gpu, 2 * trainable_) {
  const auto state = pieces_of(layout, range, Segment::state);
  pieces_.insert(pieces_.end(), state.begin(), state.end());
  if (!pieces_.empty())
    gpu.put(gpu_pieces_.data(), pieces_.data(), pieces_.size() * sizeof(TensorPiece)).wait();
  std::fill_n(rules_.data(), 2 * layout.tensors().size(), UpdateRule{});
}

void TensorUpdate::prepare(const Optimizer& optimizer, const UpdateArguments& arguments,
                           const FlatBuffers& buffers, int turn) {
  UpdateArguments complete = arguments;
  std::vector<float> ratios_of_tensors;
  if (optimizer.needs_whole_tensors()) {
    // Ratios of 1 give the rules for the measurement.
    ratios_of_tensors.assign(layout_.tensors().size(), 1.0f);
    complete.ratios = ratios_of_tensors;
    complete.learning_rate = 1.0f;
    set_rules(optimizer, complete, 0);
    ratios_of_tensors = ratios(optimizer, buffers);
    complete.ratios = ratios_of_tensors;
    complete.learning_rate = arguments.learning_rate;
  }
  set_rules(optimizer, complete, turn);
}

void TensorUpdate::set_rules(const Optimizer& optimizer, const UpdateArguments& arguments,
                             int turn) {
  for (size_t i = 0; i < layout_.tensors().size(); ++i) {
    const ParameterTensor& tensor = layout_.tensors()[i];
    UpdateRule& rule = rules_.data()[static_cast<size_t>(turn) * layout_.tensors().size() + i];
    if (tensor.segment == Segment::trainable) rule = optimizer.rule(i, arguments);
    if (tensor.segment != Segment::state) continue;
    rule.momentum = tensor.state_momentum;
    rule.gradient_scale = arguments.inverse_rows;
  }
}

Fetch::Piece TensorUpdate::rules(int turn) const {
  const size_t tensors = layout_.tensors().size();
  return {rules_.data() + static_cast<size_t>(turn) * tensors, gpu_rules_.data(),
          tensors * sizeof(UpdateRule)};
}

std::vector<float> TensorUpdate::ratios(const Optimizer& optimizer, const FlatBuffers& buffers) {
  const bool lamb = std::holds_alternative<Lamb>(optimizer.spec().kind);
  gpu_.launch(Fetch{rules(), {}});
  if (trainable_ > 0) {
    gpu_.launch(MeasureTensors{trainable_, gpu_pieces_.data(), gpu_rules_.data(), lamb, buffers,
                               gpu_squares_.data()});
    gpu_.download(squares_.data(), gpu_squares_.data(),
                  static_cast<size_t>(2 * trainable_) * sizeof(double));
  }
  gpu_.wait();
  std::vector<float> ratios(layout_.tensors().size(), 1.0f);
  for (size_t i = 0; i < static_cast<size_t>(trainable_);) {
    const int64_t tensor = pieces_[i].tensor;
    Squares all;
    for (; i < static_cast<size_t>(trainable_) && pieces_[i].tensor == tensor; ++i)
      all += {squares_.data()[2 * i], squares_.data()[2 * i + 1]};
    ratios[static_cast<size_t>(tensor)] = optimizer.ratio(all);
  }
  return ratios;
}

void TensorUpdate::apply(const FlatBuffers& buffers, const float* before, float* copy) {
  gpu_.launch(Fetch{rules(), {}});
  apply_fetched(buffers, before, copy);
}

void TensorUpdate::apply_fetched(const FlatBuffers& buffers, const float* before, float* copy) {
  if (pieces_.empty()) return;
  gpu_.launch(UpdateTensors{count(pieces_), gpu_pieces_.data(), gpu_rules_.data(), state_begin_,
                            buffers, before, copy});
}

}  // namespace muster::compute::cuda
