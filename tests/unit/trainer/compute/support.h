#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/compute/cpu/engine.h"
#include "trainer/compute/engine.h"

namespace muster::compute::testing {

// The integer hash that fixtures are generated with; see tests/fixtures/pytorch/README.md.
uint64_t fixture_bits(uint64_t number, uint64_t element);
float fixture_value(uint64_t number, uint64_t element, float limit);

// Returns the number of allocations by this program so far, on any thread.
int64_t allocations();

// A batch with memory of its own. The features are fixture values; a share of `density` of them is
// not zero.
struct OwnedBatch {
  OwnedBatch(int64_t rows, int64_t features, int64_t labels, double density = 1.0,
             uint64_t number = 7);
  OwnedBatch(const OwnedBatch&) = delete;

  // Returns a batch of the first `rows` of it.
  Batch first(int64_t rows) const;
  Batch all() const { return first(static_cast<int64_t>(labels.size())); }
  // Returns a batch of rows [begin, begin + rows).
  Batch part(int64_t begin, int64_t rows) const;

  int64_t width, target_width;
  std::vector<float> values;   // [rows, width]
  std::vector<float> targets;  // [rows, target_width]
  std::vector<int32_t> labels;
  std::vector<uint64_t> positions;
  std::vector<const void*> feature_rows;
  std::vector<const float*> target_rows;
};

LayerSpec dense(const std::string& name, int64_t units, Activation activation,
                std::vector<std::string> inputs = {}, bool trainable = true);
LayerSpec layer(const std::string& name, LayerKind kind, std::vector<std::string> inputs = {},
                bool trainable = true);
ModelSpec model(int64_t inputs, std::vector<LayerSpec> layers, int64_t labels,
                const LossKind& loss = {});
// Two branches from the input, batch normalization, an addition, a concatenation and a frozen
// layer.
ModelSpec two_branches();

// The engines that shared cases run on; all of them give the same numbers. A backend has a name and
// a maker in support.cc. simulated_gpu is CUDA's engine on a simulated GPU; gpu is that of this
// machine, in builds with CUDA.
enum class Backend { cpu, far, simulated_gpu, gpu };
const std::vector<Backend>& backends();
// Returns whether this machine lacks what the backend needs. A case must then be skipped.
bool is_missing(Backend backend);
inline constexpr const char* kNoGpu = "needs a GPU, and this machine has none";
std::string name_of(Backend backend);
std::unique_ptr<Engine> engine(Backend backend, const ModelSpec& model, int64_t max_rows,
                               int threads = 1, Precision precision = Precision::float32);
std::unique_ptr<cpu::CpuEngine> cpu_engine(const ModelSpec& model, int64_t max_rows,
                                           int threads = 1, const std::string& instruction_set = "",
                                           Precision precision = Precision::float32);
// Sets the parameters by initialize_parameters, and then moves the biases off zero.
void initialize(Engine& engine, uint64_t seed = 1);

// values() returns a copy of the whole memory; put() writes a part of it.
std::vector<float> values(const Memory& memory);
void put(Memory& memory, size_t at, std::vector<float> values);

std::vector<std::string> instruction_sets();  // those this CPU has

// Returns the sum of losses over the batch in float64, computed by the plainest code. It is the
// reference for all engines. There is no dropout. In training, batch normalization uses the batch's
// statistics.
double reference_loss(const ModelSpec& model, const ParameterLayout& layout,
                      const std::vector<double>& parameters, const Batch& batch, bool training);
std::vector<double> to_double(std::span<const float> values);

}  // namespace muster::compute::testing
