#include "trainer/data/sources/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "trainer/data/order/random.h"

namespace muster::data {
namespace {

constexpr uint64_t kMostSyntheticBytes = uint64_t{8} << 30;

Samples allocate(const char* kind, int64_t all, std::vector<int64_t> shape,
                 const Selection& selection, StorageKind storage) {
  const Selected part = select(selection, static_cast<uint64_t>(std::max<int64_t>(all, 0)), kind);
  uint64_t floats = part.count;
  for (const int64_t size : shape) {
    if (size < 1 || static_cast<uint64_t>(size) > kMostSyntheticBytes / sizeof(float) / floats) {
      throw Invalid(fmt::format("{}: {} samples of shape [{}] are empty or need more than {} GiB",
                                kind, part.count, fmt::join(shape, ", "),
                                kMostSyntheticBytes >> 30));
    }
    floats *= static_cast<uint64_t>(size);
  }
  Samples samples;
  samples.origins = {{0, kind, part.first}};
  samples.count = part.count;
  samples.shape = std::move(shape);
  samples.features = Storage(floats * sizeof(float), storage);
  return samples;
}

// Rounds to a value that is not zero, so coarsely that differences in the last bit of a logarithm
// are unlikely to matter.
float quantised(double value) {
  const double steps = std::round(value * 256.0);
  return static_cast<float>((steps == 0.0 ? 1.0 : steps) / 256.0);
}

}  // namespace

Samples make_linear(const spec::LinearSource& source, const Selection& selection,
                    StorageKind storage) {
  Samples samples = allocate("syntheticLinear", source.samples, {1}, selection, storage);
  samples.label_count = 1;
  samples.targets.resize(samples.count);
  const uint64_t first = samples.origins.front().first;
  const std::span<float> inputs = samples.features.floats();
  const CounterRandom input(source.seed, Stream::synthetic_input);
  const CounterRandom noise(source.seed, Stream::synthetic_noise);
  for (uint64_t i = 0; i < samples.count; ++i) {
    const float x = static_cast<float>(input.normal(first + i));
    inputs[i] = x;
    samples.targets[i] =
        static_cast<float>(source.slope * static_cast<double>(x) + source.intercept +
                           source.noise * noise.normal(first + i));
  }
  return samples;
}

Samples make_classes(const spec::ClassesSource& source, const Selection& selection,
                     StorageKind storage) {
  if (source.classes < 1) {
    throw Invalid(
        fmt::format("syntheticClasses: expected classes of at least 1, found {}", source.classes));
  }
  Samples samples = allocate("syntheticClasses", source.samples, source.shape, selection, storage);
  samples.label_count = source.classes;
  uint64_t width = 1;
  for (const int64_t size : samples.shape) width *= static_cast<uint64_t>(size);
  samples.labels.resize(samples.count);
  const uint64_t first = samples.origins.front().first;
  const std::span<float> features = samples.features.floats();

  const CounterRandom label(source.seed, Stream::synthetic_label);
  const CounterRandom centre(source.seed, Stream::synthetic_centre);
  const CounterRandom spread(source.seed, Stream::synthetic_spread);
  const CounterRandom presence(source.seed, Stream::synthetic_presence);
  for (uint64_t i = 0; i < samples.count; ++i) {
    const uint64_t sample = first + i;
    const uint64_t c = label.below(sample, static_cast<uint64_t>(source.classes));
    samples.labels[i] = static_cast<int32_t>(c);
    for (uint64_t f = 0; f < width; ++f) {
      const uint64_t at = sample * width + f;
      if (source.density < 1.0 && presence.uniform(at) > source.density) continue;
      features[i * width + f] = quantised(centre.normal(c * width + f) + spread.normal(at));
    }
  }
  return samples;
}

}  // namespace muster::data
