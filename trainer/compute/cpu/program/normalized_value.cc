#include "trainer/compute/cpu/program/normalized_value.h"

#include <algorithm>

namespace muster::compute::cpu {
NormalizedValue::NormalizedValue(Context& context, const Fusion& fusion, int64_t width, int writers)
    : name_(fusion.normalization->name),
      context_(context),
      parameters_(std::get<BatchNormalization>(fusion.normalization->kind), *fusion.normalization,
                  context),
      channels_(parameters_.features()),
      places_(width / channels_),
      low_(fusion.low()),
      high_(fusion.high()),
      writers_(writers),
      statistics_(context.add_own(2 * channels_ + 1)),
      sums_(context.add_own(2 * channels_)) {
  for (Block* block : {&mean_, &inverse_, &scale_, &shift_, &slope_, &offset_})
    *block = context.arena.add(channels_ * 4);
}

void NormalizedValue::clear_statistics(TeamThread thread) const {
  std::fill_n(context_.own(statistics_, 2 * channels_ + 1, thread), 2 * channels_ + 1, 0.0f);
}

void NormalizedValue::add_statistics(TeamThread thread, Numbers z, const float* unrounded,
                                     int64_t places) const {
  float* mean = context_.own(statistics_, 2 * channels_ + 1, thread);
  float& before = mean[2 * channels_];
  context_.kernels.normalized_statistics({places, channels_, z.half, z.at,
                                          z.half ? unrounded : nullptr, before, mean,
                                          mean + channels_});
  before += static_cast<float>(places);
}

void NormalizedValue::add_forward(Program& program) {
  program.add(
      name_ + " statistics",
      {reads(statistics_, Share::all), writes(mean_, Share::own), writes(inverse_, Share::own),
       writes(scale_, Share::own), writes(shift_, Share::own)},
      [this](const Step& step, TeamThread thread) { run_forward(step, thread); });
}

void NormalizedValue::run_forward(const Step& step, TeamThread thread) const {
  using Parameters = NormalizationParameters;
  const int64_t begin = thread.begin(channels_, kLine), end = thread.end(channels_, kLine);
  if (begin == end) return;
  float* mean = context_.arena.floats(mean_);
  float* inverse = context_.arena.floats(inverse_);
  const float* variance = parameters_.of(step, Parameters::kVariance);
  if (collects(step)) {
    join_statistics(step, begin, end);
    variance = inverse;
  } else {
    std::copy(parameters_.of(step, Parameters::kMean) + begin,
              parameters_.of(step, Parameters::kMean) + end, mean + begin);
  }
  context_.kernels.inverse_deviation(end - begin, variance + begin, parameters_.epsilon(),
                                     inverse + begin);
  const float* gamma = parameters_.of(step, Parameters::kGamma);
  const float* beta = parameters_.of(step, Parameters::kBeta);
  float* scale = context_.arena.floats(scale_);
  float* shift = context_.arena.floats(shift_);
  for (int64_t i = begin; i < end; ++i) {
    scale[i] = gamma[i] * inverse[i];
    shift[i] = beta[i] - mean[i] * scale[i];
  }
}

// Leaves the variances in inverse_. The threads' parts are joined in their order.
void NormalizedValue::join_statistics(const Step& step, int64_t begin, int64_t end) const {
  float* mean = context_.arena.floats(mean_);
  float* variance = context_.arena.floats(inverse_);
  const int64_t stride = Context::own_stride(2 * channels_ + 1);
  for (int64_t i = begin; i < end; ++i) {
    double all = 0, middle = 0, spread = 0;
    const float* part = context_.arena.floats(statistics_);
    for (int t = 0; t < context_.threads; ++t, part += stride) {
      const double count = part[2 * channels_];
      if (count == 0) continue;
      const double delta = part[i] - middle;
      spread += part[channels_ + i] + delta * delta * all * count / (all + count);
      middle += delta * count / (all + count);
      all += count;
    }
    mean[i] = static_cast<float>(middle);
    variance[i] = static_cast<float>(spread / all);
  }
  parameters_.keep_statistics(step, places_, begin, end, mean + begin, variance + begin);
}

void NormalizedValue::add_backward(Program& program) {
  if (!parameters_.trainable()) return;
  program.add(name_ + " gradients",
              {reads(sums_, Share::all), writes(slope_, Share::own), writes(offset_, Share::own)},
              [this](const Step& step, TeamThread thread) { run_backward(step, thread); });
}

void NormalizedValue::run_backward(const Step& step, TeamThread thread) const {
  using Parameters = NormalizationParameters;
  const int64_t begin = thread.begin(channels_, kLine), end = thread.end(channels_, kLine);
  const float share = 1.0f / static_cast<float>(step.rows * places_);
  const float* mean = context_.arena.floats(mean_);
  const float* inverse = context_.arena.floats(inverse_);
  const float* scale = context_.arena.floats(scale_);
  float* slope = context_.arena.floats(slope_);
  float* offset = context_.arena.floats(offset_);
  float* gamma = parameters_.gradient(step, Parameters::kGamma);
  float* beta = parameters_.gradient(step, Parameters::kBeta);
  const int64_t stride = Context::own_stride(2 * channels_);
  for (int64_t i = begin; i < end; ++i) {
    float sum = 0, product = 0;
    const float* part = context_.arena.floats(sums_);
    for (int t = 0; t < context_.threads; ++t, part += stride) {
      sum += part[i];
      product += part[channels_ + i];
    }
    beta[i] = sum;
    gamma[i] = product * inverse[i];
    slope[i] = scale[i] * inverse[i] * gamma[i] * share;
    offset[i] = scale[i] * sum * share - mean[i] * slope[i];
  }
  parameters_.update(step, begin, end);
}

NormalizedTile NormalizedValue::tile(Numbers z, int64_t places) const {
  NormalizedTile tile;
  tile.places = places;
  tile.channels = channels_;
  tile.half = z.half;
  tile.z = z.at;
  tile.scale = context_.arena.floats(scale_);
  tile.shift = context_.arena.floats(shift_);
  tile.low = low_;
  tile.high = high_;
  return tile;
}

void NormalizedValue::values(Numbers z, float* y, int64_t places) const {
  NormalizedTile tile = this->tile(z, places);
  tile.y = y;
  context_.kernels.normalized_values(tile);
}

void NormalizedValue::value_pairs(Numbers z, float* rows, float* row_pairs, int64_t places) const {
  NormalizedTile tile = this->tile(z, places);
  tile.rows = rows;
  tile.row_pairs = row_pairs;
  context_.kernels.normalized_value_pairs(tile);
}

std::vector<Access> NormalizedValue::value_accesses() const {
  return {reads(scale_, Share::all), reads(shift_, Share::all)};
}

NormalizedTile NormalizedValue::gradient_tile(Numbers z, Numbers dy, int64_t places) const {
  NormalizedTile tile = this->tile(z, places);
  tile.dy = dy.at;
  tile.slope = context_.arena.floats(slope_);
  tile.offset = context_.arena.floats(offset_);
  return tile;
}

void NormalizedValue::gradient(Numbers z, Numbers dy, float* dz, int64_t places) const {
  NormalizedTile tile = gradient_tile(z, dy, places);
  tile.dz = dz;
  context_.kernels.normalized_gradient(tile);
}

void NormalizedValue::gradient_pairs(Numbers z, Numbers dy, float* rows, float* row_pairs,
                                     int64_t places) const {
  NormalizedTile tile = gradient_tile(z, dy, places);
  tile.rows = rows;
  tile.row_pairs = row_pairs;
  context_.kernels.normalized_gradient_pairs(tile);
}

std::vector<Access> NormalizedValue::gradient_accesses() const {
  return {reads(slope_, Share::all), reads(offset_, Share::all)};
}

bool NormalizedValue::claim_sums() {
  return --writers_ == 0 && parameters_.trainable();
}

std::vector<Access> NormalizedValue::sums_accesses() const {
  return {reads(mean_, Share::all), writes(sums_, Share::own)};
}

void NormalizedValue::clear_sums(TeamThread thread) const {
  std::fill_n(context_.own(sums_, 2 * channels_, thread), 2 * channels_, 0.0f);
}

void NormalizedValue::add_sums(TeamThread thread, Numbers z, Numbers dy, const float* unrounded,
                               int64_t places) const {
  NormalizedTile tile = this->tile(z, places);
  tile.dy = dy.at;
  tile.unrounded = dy.half ? unrounded : nullptr;
  tile.mean = context_.arena.floats(mean_);
  tile.sums = context_.own(sums_, 2 * channels_, thread);
  context_.kernels.normalized_sums(tile);
}

}  // namespace muster::compute::cpu
