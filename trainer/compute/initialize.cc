#include "trainer/compute/initialize.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "trainer/compute/random.h"

namespace muster::compute {
namespace {

struct Fans {
  double in = 1, out = 1;
};

// Follows Keras's rule: the last axis is fan-out, the one before it fan-in, the others are a
// receptive field.
Fans fans(const std::vector<int64_t>& shape) {
  if (shape.empty()) return {};
  if (shape.size() == 1) return {double(shape[0]), double(shape[0])};
  double field = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) field *= double(shape[i]);
  return {double(shape[shape.size() - 2]) * field, double(shape.back()) * field};
}

double normal(uint64_t key, uint64_t element, uint64_t attempt) {
  const uint64_t base = combine64(combine64(key, element), attempt);
  const double u = 1.0 - unit_uniform(mix64(base));
  const double v = unit_uniform(mix64(base + 1));
  return normal_of(u, v);
}

// Returns a normal number within two standard deviations, like Keras's truncated normal.
double truncated_normal(uint64_t key, uint64_t element) {
  for (uint64_t attempt = 0;; ++attempt) {
    const double value = normal(key, element, attempt);
    if (std::abs(value) <= 2.0) return value;
  }
}

double uniform(uint64_t key, uint64_t element) {
  return 2.0 * unit_uniform(combine64(key, element)) - 1.0;
}

void fill(const ParameterTensor& tensor, uint64_t key, std::span<float> out) {
  const Fans fan = fans(tensor.shape);
  const double scale = tensor.initializer.scale;
  // 0.8796...: the standard deviation of a unit normal cut at 2.
  const double he = std::sqrt(2.0 / fan.in) / 0.87962566103423978;
  const double glorot = std::sqrt(6.0 / (fan.in + fan.out));
  for (size_t i = 0; i < out.size(); ++i) {
    double value = 0;
    switch (tensor.initializer.kind) {
      case InitializerKind::glorot_uniform:
        value = glorot * uniform(key, i);
        break;
      case InitializerKind::he_normal:
        value = he * truncated_normal(key, i);
        break;
      case InitializerKind::normal:
        value = scale * normal(key, i, 0);
        break;
      case InitializerKind::truncated_normal:
        value = scale * truncated_normal(key, i);
        break;
      case InitializerKind::uniform:
        value = scale * uniform(key, i);
        break;
      case InitializerKind::constant:
        value = scale;
        break;
      case InitializerKind::zeros:
        break;
    }
    out[i] = static_cast<float>(value);
  }
}

}  // namespace

void initialize_parameters(const ParameterLayout& layout, uint64_t seed,
                           std::span<float> parameters) {
  if (parameters.size() != layout.size()) {
    throw Invalid("initializing parameters: expected " + std::to_string(layout.size()) +
                  " floats, found " + std::to_string(parameters.size()));
  }
  std::fill(parameters.begin(), parameters.end(), 0.0f);
  for (const ParameterTensor& tensor : layout.tensors()) {
    fill(tensor, combine64(seed, hash_name(tensor.name)),
         parameters.subspan(tensor.offset, tensor.count));
  }
}

}  // namespace muster::compute
