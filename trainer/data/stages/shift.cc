#include <algorithm>
#include <cstring>

#include "trainer/data/stages/stage.h"

namespace muster::data {

void apply(const spec::Shift& shift, Sample& sample, Draws& draws) {
  const auto most = static_cast<uint64_t>(shift.pixels);
  const auto height = static_cast<int64_t>(sample.height());
  const auto width = static_cast<int64_t>(sample.width());
  const auto draw = [&] { return static_cast<int64_t>(draws.below(2 * most + 1)) - shift.pixels; };
  const int64_t down = draw(), right = draw();
  const size_t pixel = sample.pixel_bytes(), row = static_cast<size_t>(width) * pixel;
  const auto kept = static_cast<size_t>(std::max<int64_t>(width - std::abs(right), 0)) * pixel;
  const size_t to = static_cast<size_t>(std::max<int64_t>(right, 0)) * pixel;
  const size_t from = static_cast<size_t>(std::max<int64_t>(-right, 0)) * pixel;
  sample.scratch.assign(sample.features.size(), std::byte{0});
  for (int64_t y = std::max<int64_t>(down, 0); y < std::min(height, height + down); ++y) {
    std::memcpy(sample.scratch.data() + static_cast<size_t>(y) * row + to,
                sample.features.data() + static_cast<size_t>(y - down) * row + from, kept);
  }
  sample.features.swap(sample.scratch);
  if (sample.boxes.empty()) return;
  const float y = static_cast<float>(down) / static_cast<float>(height);
  const float x = static_cast<float>(right) / static_cast<float>(width);
  for (images::Box& box : sample.boxes) {
    box.ymin += y, box.ymax += y;
    box.xmin += x, box.xmax += x;
  }
  images::keep_usable(sample.boxes);
}

}  // namespace muster::data
