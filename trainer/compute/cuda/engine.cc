#include "trainer/compute/cuda/engine.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <stdexcept>

#include "common/error.h"
#include "trainer/compute/check_batch.h"

namespace muster::compute::cuda {
namespace {

// The recordings that are kept: for whole batches and an epoch's last batch, each for gradients,
// training in either turn and evaluation, and for features in either landing.
constexpr size_t kMostRecordings = 16;
constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Stands for a layer that is part of another layer's operation.
class Nothing : public Operation {
 public:
  void forward(Program&) override {}
  void backward(Program&) override {}
};

bool on_gpu(Memory& memory) {
  return !memory.floats().is_on_host();
}

}  // namespace

CudaEngine::CudaEngine(Graph graph, const EngineOptions& options, std::unique_ptr<Gpu> gpu,
                       const Limits& limits)
    : device_(options.device),
      graph_(std::move(graph)),
      gpu_(std::move(gpu)),
      max_rows_(options.max_rows),
      least_stretch_(limits.stretch),
      labels_(describe(graph_.loss).labels),
      context_(graph_, *gpu_, options, limits.patches),
      own_parameters_(*gpu_, graph_.layout.size()),
      own_gradients_(*gpu_, graph_.layout.size()),
      update_(*gpu_, graph_.layout, {0, graph_.layout.size()}),
      places_([this] {
        Places places{};
        places.positions = kAlignment;
        places.starts = places.positions + aligned(max_rows_ * int64_t{sizeof(uint64_t)});
        places.labels = places.starts + aligned(max_rows_ * int64_t{sizeof(uint64_t)});
        places.weights = places.labels + aligned(max_rows_ * int64_t{sizeof(int32_t)});
        places.targets = places.weights + aligned(max_rows_ * int64_t{sizeof(float)});
        const int64_t targets = labels_ == LabelKind::classes ? 0 : graph_.label_count;
        places.end = aligned(places.targets + max_rows_ * targets * int64_t{sizeof(float)});
        return places;
      }()),
      staged_(*gpu_, 2 * places_.end),
      batch_(*gpu_, places_.end),
      outputs_(*gpu_, max_rows_ * graph_.outputs()),
      input_(*gpu_, max_rows_, graph_.values[0].width) {
  check_precision(options.precision, context_.fusions);
  context_.step = {reinterpret_cast<const uint64_t*>(batch_.data()),
                   reinterpret_cast<const uint64_t*>(batch_.data() + places_.positions),
                   reinterpret_cast<const int32_t*>(batch_.data() + places_.labels),
                   reinterpret_cast<const float*>(batch_.data() + places_.weights),
                   reinterpret_cast<float*>(batch_.data() + places_.targets),
                   reinterpret_cast<const float*>(staged_.data() + places_.targets)};
  for (const Node& node : graph_.nodes) operations_.push_back(make(node));
  loss_ = std::visit([&](const auto& kind) { return make_loss(kind, context_); }, graph_.loss);
  context_.allocate_reserved();
  forward_.add([this](const Step& step) { context_.rounded.write(step.parameters); });
  for (const auto& operation : operations_) operation->forward(forward_);
  add_backward();
  if (graph_.prediction == OutputFunction::softmax)
    probabilities_.emplace(*gpu_, max_rows_ * graph_.outputs());
}

std::unique_ptr<Operation> CudaEngine::make(const Node& node) {
  const Node* made = operation_at(context_.fusions, node);
  if (made == nullptr) return std::make_unique<Nothing>();
  return std::visit([&](const auto& kind) { return make_operation(kind, *made, context_); },
                    made->kind);
}

// The trainable parameters of the operations that come last in the backward pass lie last.
void CudaEngine::add_backward() {
  size_t complete = 0;
  for (size_t i = operations_.size(); i-- > 0;) {
    operations_[i]->backward(backward_);
    size_t first = graph_.layout.segment(Segment::trainable).end;
    for (size_t before = 0; before < i; ++before)
      for (const std::string& name : graph_.nodes[before].parameters)
        first = std::min(first, graph_.layout.find(name).offset);
    if (first > complete) backward_.completes(complete = first);
  }
}

std::unique_ptr<Memory> CudaEngine::allocate() const {
  return std::make_unique<CudaMemory>(*gpu_, graph_.layout.size());
}

CudaMemory& CudaEngine::own_kind(Memory& memory) const {
  auto* cuda = dynamic_cast<CudaMemory*>(&memory);
  if (cuda == nullptr || &cuda->gpu() != gpu_.get() || cuda->size() != graph_.layout.size())
    throw Invalid("engine: expected a buffer of " + std::to_string(graph_.layout.size()) +
                  " floats in the memory of " + to_string(device_) + ", found one of " +
                  std::to_string(memory.size()) + " floats or in other memory");
  return *cuda;
}

void CudaEngine::use(Memory& parameters, Memory* gradients) {
  CudaMemory& from = own_kind(parameters);
  gradients_ = gradients ? &own_kind(*gradients) : &own_gradients_;
  parameters_ = &from;
}

void CudaEngine::use_own() {
  const auto size = static_cast<int64_t>(graph_.layout.size());
  if (parameters_ != &own_parameters_ && size > 0) {
    gpu_->launch(Copy{1, size, parameters_->data(), size, own_parameters_.data(), size, false});
    gpu_->wait();
  }
  parameters_ = &own_parameters_;
  gradients_ = &own_gradients_;
}

CudaEngine::Form CudaEngine::stage(Kind kind, const Batch& batch, int turn) {
  const auto rows = static_cast<size_t>(batch.rows);
  char* to = staged(turn);
  std::memcpy(to, &batch.epoch, sizeof batch.epoch);
  auto* positions = reinterpret_cast<uint64_t*>(to + places_.positions);
  for (size_t row = 0; row < rows; ++row)
    positions[row] = row < batch.positions.size() ? batch.positions[row] : row;
  auto* weights = reinterpret_cast<float*>(to + places_.weights);
  for (size_t row = 0; row < rows; ++row)
    weights[row] = row < batch.weights.size() ? batch.weights[row] : 1.0f;
  if (kind != Kind::prediction && labels_ == LabelKind::classes) {
    std::memcpy(to + places_.labels, batch.labels.data(), rows * sizeof(int32_t));
  } else if (kind != Kind::prediction) {
    const size_t bytes = static_cast<size_t>(graph_.label_count) * sizeof(float);
    for (size_t row = 0; row < rows; ++row)
      std::memcpy(to + places_.targets + row * bytes, batch.targets[row], bytes);
  }
  auto* starts = reinterpret_cast<uint64_t*>(to + places_.starts);
  return {kind,
          turn,
          batch.rows,
          input_.take(batch, starts),
          batch.scale,
          batch.offset,
          {parameters_->data(), gradients_->data(), nullptr, nullptr, nullptr}};
}

// Asks for all the work of a run. told(end) is called when gradients [0, end) are complete.
void CudaEngine::ask(const Form& form, const std::function<void(size_t end)>& told) {
  const bool training = trains(form.kind);
  const Step step{form.rows, training, form.turn, form.buffers.parameters, gradients_->data()};
  Fetch fetch{{staged(form.turn), batch_.data(), static_cast<size_t>(places_.end)}, {}};
  if (form.kind == Kind::training) fetch.second = update_.rules(form.turn);
  gpu_->launch(fetch);
  input_.convert(form.source, form.rows, form.scale, form.offset,
                 reinterpret_cast<const uint64_t*>(batch_.data() + places_.starts),
                 context_.value(0).values());
  forward_.run(step);
  if (form.kind != Kind::prediction) loss_->run(step);
  if (training) backward_.run(step, told);
  if (form.kind == Kind::training) update_.apply_fetched(form.buffers);
  if (training) return;
  const ValueMemory& output = context_.value(graph_.output);
  const float* outputs = output.values();
  if (form.kind == Kind::prediction && probabilities_) {
    gpu_->launch(Softmax{form.rows, output.width, outputs, probabilities_->data()});
    outputs = probabilities_->data();
  }
  gpu_->download(outputs_.data(), outputs,
                 static_cast<size_t>(form.rows * output.width) * sizeof(float));
}

const std::vector<CudaEngine::Stretch>& CudaEngine::recorded(const Form& form) {
  const auto found = std::ranges::find(recordings_, form, &Recordings::value_type::first);
  if (found != recordings_.end()) {
    // The recording that has been unused for the longest time is the first one.
    std::rotate(found, std::next(found), recordings_.end());
    return recordings_.back().second;
  }
  if (recordings_.size() == kMostRecordings) recordings_.erase(recordings_.begin());
  std::vector<Stretch> stretches;
  const auto end_stretch = [&](size_t end) { stretches.push_back({gpu_->end_recording(), end}); };
  gpu_->begin_recording();
  if (form.kind == Kind::stretches) {
    ask(form, [&](size_t end) {
      if (end - (stretches.empty() ? 0 : stretches.back().end) < least_stretch_) return;
      end_stretch(end);
      gpu_->begin_recording();
    });
  } else {
    ask(form, {});
  }
  end_stretch(0);
  return recordings_.emplace_back(form, std::move(stretches)).second;
}

void CudaEngine::run(const Form& form, const OnComplete& on_complete) {
  std::vector<std::pair<size_t, Completion>> marks;
  for (const Stretch& stretch : recorded(form)) {
    gpu_->replay(*stretch.work);
    if (stretch.end > 0) marks.emplace_back(stretch.end, gpu_->mark());
  }
  bool looked = !trains(form.kind);
  std::exception_ptr failure;
  const auto look_once = [&] {
    if (!std::exchange(looked, true)) failure = look_ahead();
  };
  for (auto& [end, mark] : marks) {
    mark.wait();
    on_complete(end);
    look_once();
  }
  look_once();
  gpu_->wait();
  if (failure) std::rethrow_exception(failure);
}

std::exception_ptr CudaEngine::look_ahead() {
  try {
    input_.finish_reading();
    if (meanwhile_) meanwhile_();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

LossSums CudaEngine::sums(int64_t rows, double weight, int turn) const {
  LossSums sums = loss_->sums(rows, turn);
  sums.rows = rows;
  sums.weight = weight;
  return sums;
}

LossSums CudaEngine::compute_gradients(const Batch& batch, const OnComplete& on_complete) {
  check_batch(batch, graph_, max_rows_, true);
  if (batch.rows == 0) {
    gpu_->clear(gradients_->data(), graph_.layout.size() * sizeof(float));
    gpu_->wait();
    return {};
  }
  const Form now = stage(on_complete ? Kind::stretches : Kind::gradients, batch);
  const double weight = loss_->prepare(batch);
  run(now, on_complete);
  return sums(now.rows, weight);
}

FlatBuffers CudaEngine::buffers_of(const Optimizer& optimizer,
                                   std::span<Memory* const> slots) const {
  check_slots(optimizer, slots, graph_.layout, on_gpu);
  FlatBuffers buffers{parameters_->data(), gradients_->data(), nullptr, nullptr, nullptr};
  set_slots(
      optimizer, slots.size(), [&](size_t i) { return own_kind(*slots[i]).data(); }, buffers);
  return buffers;
}

LossSums CudaEngine::train(const Batch& batch, const Optimizer& optimizer,
                           const UpdateArguments& update, std::span<Memory* const> slots) {
  if (!optimizer.needs_whole_tensors()) {
    begin_training(batch, optimizer, update, slots);
    return end_training();
  }
  const FlatBuffers buffers = buffers_of(optimizer, slots);
  const LossSums sums = compute_gradients(batch);
  if (batch.rows == 0) return sums;
  UpdateArguments arguments = update;
  arguments.divide_by(sums);
  update_.prepare(optimizer, arguments, buffers);
  update_.apply(buffers);
  gpu_->wait();
  return sums;
}

void CudaEngine::begin_training(const Batch& batch, const Optimizer& optimizer,
                                const UpdateArguments& update, std::span<Memory* const> slots) {
  check_batch(batch, graph_, max_rows_, true);
  const FlatBuffers buffers = buffers_of(optimizer, slots);
  if (begun_.size() == kMostAhead || (!begun_.empty() && loss_->waits()))
    throw std::logic_error("engine: expected that a step is ended before this one is begun");
  int turn = 0;
  if (!begun_.empty()) {
    begun_.back().done = gpu_->mark();
    turn = 1 - begun_.back().turn;
    // Features that are not on the GPU yet are copied to memory that the previous step may still
    // read.
    if (batch.rows > 0 && !input_.has(batch)) gpu_->wait();
  }
  Begun begun{turn, batch.rows, 0, {}, nullptr};
  if (batch.rows > 0) {
    Form form = stage(Kind::training, batch, turn);
    form.buffers = buffers;
    LossSums divisors;
    divisors.rows = batch.rows;
    divisors.weight = begun.weight = loss_->prepare(batch);
    UpdateArguments arguments = update;
    arguments.divide_by(divisors);
    update_.prepare(optimizer, arguments, buffers, turn);
    gpu_->replay(*recorded(form).front().work);
    begun.failure = look_ahead();
  }
  begun_.push_back(std::move(begun));
}

LossSums CudaEngine::end_training() {
  Begun begun = std::move(begun_.front());
  begun_.pop_front();
  // The last step's work is all the work that has been asked for.
  if (begun_.empty())
    gpu_->wait();
  else
    begun.done.wait();
  if (begun.failure) std::rethrow_exception(begun.failure);
  if (begun.rows == 0) return {};
  return sums(begun.rows, begun.weight, begun.turn);
}

void CudaEngine::run_outputs(const Form& form, std::span<float> outputs) {
  run(form);
  const auto count = static_cast<size_t>(form.rows * output_count());
  if (!outputs.empty()) std::copy_n(outputs_.data(), count, outputs.begin());
}

LossSums CudaEngine::evaluate(const Batch& batch, std::span<float> outputs) {
  check_batch(batch, graph_, max_rows_, true);
  if (!outputs.empty()) check_room(batch, output_count(), outputs);
  if (batch.rows == 0) return {};
  const Form form = stage(Kind::evaluation, batch);
  const double weight = loss_->prepare(batch);
  run_outputs(form, outputs);
  return sums(form.rows, weight);
}

void CudaEngine::predict(const Batch& batch, std::span<float> outputs) {
  check_batch(batch, graph_, max_rows_, false);
  check_room(batch, output_count(), outputs);
  if (batch.rows == 0) return;
  run_outputs(stage(Kind::prediction, batch), outputs);
  apply_function(graph_.prediction,
                 outputs.first(static_cast<size_t>(batch.rows * output_count())));
}

}  // namespace muster::compute::cuda
