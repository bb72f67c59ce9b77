#include "trainer/compute/cpu/engine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/compute/check_batch.h"
#include "trainer/compute/cpu/program/normalized_value.h"
#include "trainer/compute/loss.h"

namespace muster::compute::cpu {
namespace {

// A product with fewer columns is finished before a list of its zeros could save time.
constexpr int64_t kWorthListing = 64;
// The share of nonzero values below which it is faster to skip zeros.
constexpr double kSparseBelow = 0.6;

// A node that the operation of another node computes.
class Nothing : public Operation {
 public:
  void forward(Program&) override {}
  void backward(Program&) override {}
};

bool on_host(Memory& memory) {
  return memory.floats().is_on_host();
}

std::vector<UpdateRule> sized(size_t n) {
  return std::vector<UpdateRule>(n);
}

}  // namespace

CpuEngine::CpuEngine(Graph graph, const EngineOptions& options, const Kernels& kernels)
    : device_(options.device),
      precision_(options.precision),
      graph_(std::move(graph)),
      context_{graph_,
               kernels,
               arena_,
               options.threads,
               options.max_rows,
               options.seed,
               precision_ == Precision::bfloat16 && kernels.gemm_pairs != nullptr,
               find_fusions(graph_),
               {}},
      own_parameters_(graph_.layout.size()),
      own_gradients_(graph_.layout.size()),
      parameters_(std::span<float>(own_parameters_)),
      gradients_(std::span<float>(own_gradients_)),
      rules_(sized(graph_.layout.tensors().size())),
      work_([this](TeamThread thread) {
        uint64_t* ticks =
            profiling_ ? &ticks_[static_cast<size_t>(thread.index) * training_.size()] : nullptr;
        program_->run(step_, thread, team_, ticks);
      }),
      team_(options.threads, options.exclusive) {
  check_precision(precision_, context_.fusions);
  add_values();
  add_normalized();
  operations_.push_back(make_input(context_));
  for (const Node& node : graph_.nodes) {
    operations_.push_back(make(node));
  }
  loss_ = std::visit([&](const auto& kind) { return make_loss(kind, context_); }, graph_.loss);
  for (Program* program : {&training_, &evaluation_, &prediction_}) {
    for (const auto& operation : operations_) operation->forward(*program);
  }
  loss_->forward(training_);
  loss_->forward(evaluation_);
  add_backward();
  arrivals_ = std::vector<std::atomic<int>>(training_.size());
  arena_.allocate();
  ticks_.resize(training_.size() * static_cast<size_t>(options.threads));
}

std::unique_ptr<Operation> CpuEngine::make(const Node& node) {
  const Node* made = operation_at(context_.fusions, node);
  if (made == nullptr) return std::make_unique<Nothing>();
  return std::visit([&](const auto& kind) { return make_operation(kind, *made, context_); },
                    made->kind);
}

// The trainable parameters of the operations that come last in the backward pass lie last.
void CpuEngine::add_backward() {
  const ParameterLayout& layout = graph_.layout;
  // first[i]: the lowest offset of the parameters of the nodes before node i.
  std::vector<size_t> first{layout.segment(Segment::trainable).end};
  for (const Node& node : graph_.nodes) {
    size_t least = first.back();
    for (const std::string& name : node.parameters)
      least = std::min(least, layout.find(name).offset);
    first.push_back(least);
  }
  size_t complete = 0;
  for (size_t i = operations_.size(); i-- > 1;) {
    operations_[i]->backward(training_);
    if (first[i - 1] > complete) training_.completes(complete = first[i - 1]);
  }
  operations_[0]->backward(training_);
}

void CpuEngine::add_values() {
  const std::vector<bool> apart = in_planes();
  const int output = graph_.values[static_cast<size_t>(graph_.output)].memory;
  std::vector<size_t> owners;  // owners of gradients
  std::vector<Temporary> gradients;
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const Value& value = graph_.values[i];
    ValueBlocks blocks;
    if (value.memory != static_cast<int>(i) || is_inside(context_.fusions, static_cast<int>(i))) {
      context_.values.push_back(std::move(blocks));
      continue;
    }
    blocks.width = value.width;
    blocks.stride = round_up(value.width, kLine);
    blocks.needs_gradient = value.needs_gradient;
    if (apart[i]) {
      blocks.stride = widest_share(value.width);
      blocks.plane = round_up(context_.max_rows * blocks.stride, Arena::kPage / 4);
    }
    blocks.half =
        precision_ == Precision::bfloat16 && is_end(context_.fusions, static_cast<int>(i));
    const int64_t bytes = context_.max_rows * blocks.stride * (blocks.half ? 2 : 4);
    // The loss always writes a gradient, even where nothing is trained.
    const bool gradient = value.needs_gradient || static_cast<int>(i) == output;
    if (blocks.plane > 0) {
      const int64_t planes = context_.threads * blocks.plane * 4;
      blocks.data = arena_.add_pages(planes);
      if (gradient) blocks.gradient = arena_.add_pages(planes);
    } else {
      blocks.data = arena_.add(bytes);
      if (gradient) {
        owners.push_back(i);
        gradients.push_back(gradient_of(static_cast<int>(i), bytes));
      }
    }
    context_.values.push_back(std::move(blocks));
  }
  const std::vector<Block> placed = arena_.add(gradients);
  for (size_t i = 0; i < owners.size(); ++i) context_.values[owners[i]].gradient = placed[i];
  // Dense layers skip the zeros of the input and of the outputs of rectifiers.
  std::vector<bool> listed(graph_.values.size());
  listed[0] = true;
  for (const Node& node : graph_.nodes) {
    const Dense* dense = std::get_if<Dense>(&node.kind);
    if (dense == nullptr) continue;
    const int from = graph_.values[static_cast<size_t>(node.inputs[0])].memory;
    ValueBlocks& input = context_.value(from);
    const bool worth = from == 0 || dense->units >= kWorthListing;
    if (worth && listed[static_cast<size_t>(from)] && !input.sparse) add_sparse(input);
    listed[static_cast<size_t>(node.output)] =
        dense->activation == Activation::relu && dense->units >= kLine * context_.threads;
  }
}

// The moments are the places of operations. The backward pass goes from the last operation to the
// first: the gradient of a value is in use from the last operation that reads the value to the
// first operation that writes the value.
Temporary CpuEngine::gradient_of(int value, int64_t bytes) const {
  const auto is_it = [&](int other) {
    return graph_.values[static_cast<size_t>(other)].memory == value;
  };
  const int after_all = static_cast<int>(graph_.nodes.size());
  Temporary gradient{bytes, after_all, 0};
  if (is_it(graph_.output)) gradient.last = after_all;
  for (int i = 0; i < after_all; ++i) {
    const Node& node = graph_.nodes[static_cast<size_t>(i)];
    const int at = place_of(node);
    if (is_it(node.output)) gradient.first = std::min(gradient.first, at);
    if (std::ranges::any_of(node.inputs, is_it)) gradient.last = std::max(gradient.last, at);
  }
  gradient.last = std::max(gradient.last, gradient.first);
  return gradient;
}

// Returns the place of the operation that computes a node.
int CpuEngine::place_of(const Node& node) const {
  const Node* made = &node;
  for (const Fusion& fusion : context_.fusions)
    if (fusion.has(node)) made = &fusion.last();
  return static_cast<int>(made - graph_.nodes.data());
}

void CpuEngine::add_normalized() {
  for (const Fusion& fusion : context_.fusions) {
    const int output = fusion.last().output;
    const auto readers = std::ranges::count_if(graph_.nodes, [&](const Node& node) {
      return std::ranges::find(node.inputs, output) != node.inputs.end();
    });
    ValueBlocks& value = context_.value(output);
    value.normalized =
        std::make_unique<NormalizedValue>(context_, fusion, value.width, static_cast<int>(readers));
  }
}

int64_t CpuEngine::widest_share(int64_t width) const {
  return (round_up(width, kLine) / kLine + context_.threads - 1) / context_.threads * kLine;
}

// Returns which values lie in planes: the values that only dense layers and the input use, by
// columns.
std::vector<bool> CpuEngine::in_planes() const {
  std::vector<bool> apart;
  for (const Value& value : graph_.values)
    apart.push_back(context_.threads > 1 && value.width >= kLine * context_.threads);
  const auto together = [&](int value) {
    apart[static_cast<size_t>(graph_.values[static_cast<size_t>(value)].memory)] = false;
  };
  together(graph_.output);
  for (const Node& node : graph_.nodes) {
    if (std::holds_alternative<Dense>(node.kind)) continue;
    for (int input : node.inputs) together(input);
    together(node.output);
  }
  return apart;
}

void CpuEngine::add_sparse(ValueBlocks& value) {
  value.sparse = std::make_unique<SparseValue>();
  SparseValue& sparse = *value.sparse;
  const int64_t widest = widest_share(value.width);
  sparse.words = round_up(context_.max_rows, 32) / 32;
  sparse.counts_stride = Context::own_stride(context_.max_rows * round_up(widest, kSlot) / kSlot);
  sparse.entries_stride = Context::own_stride(context_.max_rows * widest + kSlack);
  sparse.counts = arena_.add(context_.threads * sparse.counts_stride * 4);
  sparse.indices = arena_.add(context_.threads * sparse.entries_stride * 4);
  sparse.values = arena_.add(context_.threads * sparse.entries_stride * 4);
  sparse.masks = arena_.add(round_up(value.width, kLine) * sparse.words * 4);
  sparse.nonzeros = arena_.add(context_.threads * kLine * 4);
}

std::string CpuEngine::instruction_set() const {
  return std::string(context_.kernels.name) + (context_.pairs ? "_bf16/" : "/") +
         std::to_string(team_.count());
}

int64_t CpuEngine::output_count() const {
  return graph_.values[static_cast<size_t>(graph_.output)].width;
}

std::unique_ptr<Memory> CpuEngine::allocate() const {
  return std::make_unique<HostMemory>(graph_.layout.size());
}

void CpuEngine::use(Memory& parameters, Memory* gradients) {
  const std::span<float> from = parameters.floats().host();
  const std::span<float> to = gradients ? gradients->floats().host() : std::span(own_gradients_);
  if (from.size() != graph_.layout.size() || to.size() != graph_.layout.size())
    throw Invalid("engine: expected buffers of " + std::to_string(graph_.layout.size()) +
                  " floats in the host's memory, found " + std::to_string(from.size()) + " and " +
                  std::to_string(to.size()));
  parameters_.view(from);
  gradients_.view(to);
}

void CpuEngine::use_own() {
  const std::span<float> now = parameters_.floats().host();
  if (now.data() != own_parameters_.data())
    std::copy(now.begin(), now.end(), own_parameters_.begin());
  parameters_.view(own_parameters_);
  gradients_.view(own_gradients_);
}

void CpuEngine::run(const Program& program, const Step& step) {
  step_ = step;
  program_ = &program;
  team_.run(work_);
}

LossSums CpuEngine::run_training(Step step) {
  step.training = true;
  step.rows = step.batch->rows;
  step.parameters = parameters_.floats().host().data();
  step.gradients = gradients_.floats().host().data();
  run(training_, step);
  choose_sparsity(step.rows);
  return sums(*step.batch);
}

LossSums CpuEngine::sums(const Batch& batch) const {
  LossSums sums = loss_->sums(batch.rows);
  sums.rows = batch.rows;
  sums.weight = weight_;
  return sums;
}

// Chooses by the values of the last step: in most data sets the density hardly changes, and both
// choices give the same bits.
void CpuEngine::choose_sparsity(int64_t rows) {
  for (ValueBlocks& value : context_.values) {
    if (!value.sparse) continue;
    int64_t nonzeros = 0;
    for (int m = 0; m < context_.threads; ++m) {
      nonzeros += arena_.integers(value.sparse->nonzeros)[m * kLine];
    }
    const double density = double(nonzeros) / double(rows * value.width);
    value.sparse->active = sparsity_ == Sparsity::always ||
                           (sparsity_ == Sparsity::measured && density < kSparseBelow);
  }
}

void CpuEngine::set_sparsity(Sparsity sparsity) {
  sparsity_ = sparsity;
  for (ValueBlocks& value : context_.values) {
    if (value.sparse) value.sparse->active = sparsity == Sparsity::always;
  }
}

LossSums CpuEngine::compute_gradients(const Batch& batch, const OnComplete& on_complete) {
  check_batch(batch, graph_, context_.max_rows, true);
  if (batch.rows == 0) {
    std::ranges::fill(gradients_.floats().host(), 0.0f);
    return {};
  }
  weight_ = loss_->prepare(batch);
  return run_gradients(batch, on_complete);
}

// Precondition: the loss is prepared.
LossSums CpuEngine::run_gradients(const Batch& batch, const OnComplete& on_complete) {
  Step step;
  step.batch = &batch;
  if (on_complete) step.on_complete = &on_complete;
  step.arrivals = arrivals_.data();
  return run_training(step);
}

LossSums CpuEngine::train(const Batch& batch, const Optimizer& optimizer,
                          const UpdateArguments& update, std::span<Memory* const> slots) {
  check_batch(batch, graph_, context_.max_rows, true);
  check_slots(optimizer, slots, graph_.layout, on_host);
  if (batch.rows == 0) return {};
  UpdateArguments arguments = update;
  LossSums divisors;
  divisors.rows = batch.rows;
  divisors.weight = weight_ = loss_->prepare(batch);
  arguments.divide_by(divisors);
  if (optimizer.needs_whole_tensors()) return train_whole(batch, optimizer, arguments, slots);
  for (size_t i = 0; i < rules_.size(); ++i) rules_[i] = optimizer.rule(i, arguments);
  Step step;
  step.batch = &batch;
  step.rules = rules_.data();
  const size_t own_slots = optimizer.average_slot().value_or(slots.size());
  for (size_t i = 0; i < own_slots; ++i) step.slots[i] = slots[i]->floats().host().data();
  if (own_slots < slots.size()) step.average = slots.back()->floats().host().data();
  return run_training(step);
}

// A tensor's update cannot begin before its whole gradient is complete, so it is not part of the
// backward pass.
LossSums CpuEngine::train_whole(const Batch& batch, const Optimizer& optimizer,
                                const UpdateArguments& arguments, std::span<Memory* const> slots) {
  if (!whole_update_) whole_update_.emplace(graph_.layout);
  const LossSums sums = run_gradients(batch, nullptr);
  std::array<std::span<float>, kMostSlots> views;
  for (size_t i = 0; i < slots.size(); ++i) views[i] = slots[i]->floats().host();
  whole_update_->run(team_, optimizer, arguments, parameters_.floats().host(),
                     gradients_.floats().host(), std::span(views).first(slots.size()));
  return sums;
}

LossSums CpuEngine::evaluate(const Batch& batch, std::span<float> outputs) {
  check_batch(batch, graph_, context_.max_rows, true);
  if (!outputs.empty()) check_room(batch, output_count(), outputs);
  if (batch.rows == 0) return {};
  Step step;
  step.batch = &batch;
  step.rows = batch.rows;
  step.parameters = parameters_.floats().host().data();
  weight_ = loss_->prepare(batch);
  run(evaluation_, step);
  if (!outputs.empty()) copy_outputs(batch.rows, OutputFunction::none, outputs);
  return sums(batch);
}

void CpuEngine::copy_outputs(int64_t rows, OutputFunction function, std::span<float> outputs) {
  const ValueBlocks& value = context_.value(graph_.output);
  for (int64_t row = 0; row < rows; ++row) {
    const float* y = arena_.floats(value.data) + row * value.stride;
    float* to = outputs.data() + row * value.width;
    if (function == OutputFunction::softmax) {
      context_.kernels.softmax(value.width, y, to, -1);
    } else {
      std::copy(y, y + value.width, to);
      apply_function(function, {to, static_cast<size_t>(value.width)});
    }
  }
}

void CpuEngine::predict(const Batch& batch, std::span<float> outputs) {
  check_batch(batch, graph_, context_.max_rows, false);
  check_room(batch, output_count(), outputs);
  if (batch.rows == 0) return;
  Step step;
  step.batch = &batch;
  step.rows = batch.rows;
  step.parameters = parameters_.floats().host().data();
  run(prediction_, step);
  copy_outputs(batch.rows, graph_.prediction, outputs);
}

std::vector<CpuEngine::PhaseTime> CpuEngine::phase_times() const {
  std::vector<PhaseTime> times;
  for (size_t phase = 0; phase < training_.size(); ++phase) {
    uint64_t most = 0;
    for (int m = 0; m < context_.threads; ++m) {
      most = std::max(most, ticks_[static_cast<size_t>(m) * training_.size() + phase]);
    }
    times.push_back({training_.name(phase), most});
  }
  return times;
}

}  // namespace muster::compute::cpu
