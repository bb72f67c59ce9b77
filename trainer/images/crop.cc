#include "trainer/images/crop.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace muster::images {
namespace {

constexpr int kAttempts = 100;

// A rectangle of whole pixels; empty ones have an area of 0.
struct Rectangle {
  int64_t top, left, bottom, right;

  float area() const {
    return static_cast<float>(std::max<int64_t>(bottom - top, 0) *
                              std::max<int64_t>(right - left, 0));
  }
  Rectangle with(const Rectangle& other) const {
    return {std::max(top, other.top), std::max(left, other.left), std::min(bottom, other.bottom),
            std::min(right, other.right)};
  }
};

int64_t rounded(float value) {
  return std::lrint(value);
}

// Returns a random rectangle of the given aspect: its height is uniform between the heights for the
// least and the most area, and its place is uniform. Returns nothing if the pixels are too coarse.
std::optional<Rectangle> random_rectangle(int64_t height, int64_t width, const CropKind& kind,
                                          float aspect, RandomNumbers& numbers) {
  const float pixels = static_cast<float>(height) * static_cast<float>(width);
  const float least_area = kind.least_area * pixels, most_area = kind.most_area * pixels;
  const auto width_for = [&](int64_t rows) { return rounded(static_cast<float>(rows) * aspect); };
  int64_t highest = rounded(std::sqrt(most_area / aspect));
  if (width_for(highest) > width) {
    highest = static_cast<int64_t>((static_cast<double>(width) + 0.5 - 1e-7) / aspect);
    if (width_for(highest) > width) --highest;
  }
  highest = std::min(highest, height);
  int64_t rows = std::min(rounded(std::sqrt(least_area / aspect)), highest);
  if (rows < highest) {
    rows += static_cast<int64_t>(numbers.below(static_cast<uint64_t>(highest - rows + 1)));
  }
  const auto area = [&] { return static_cast<float>(rows * width_for(rows)); };
  // Rounding may have moved the area out of the bounds by one row.
  if (area() < least_area) ++rows;
  if (area() > most_area) --rows;
  const int64_t columns = width_for(rows);
  if (area() < least_area || area() > most_area || rows <= 0 || rows > height || columns <= 0 ||
      columns > width) {
    return std::nullopt;
  }
  const auto place = [&](int64_t room) {
    return room == 0 ? 0 : static_cast<int64_t>(numbers.below(static_cast<uint64_t>(room)));
  };
  const int64_t top = place(height - rows), left = place(width - columns);
  return Rectangle{top, left, top + rows, left + columns};
}

bool covers(const Rectangle& window, float share, const std::vector<Rectangle>& objects) {
  return std::any_of(objects.begin(), objects.end(), [&](const Rectangle& object) {
    return object.area() >= 1 && window.with(object).area() / object.area() >= share;
  });
}

std::vector<Rectangle> objects_of(const std::vector<Box>& boxes, int64_t height, int64_t width) {
  if (boxes.empty()) return {{0, 0, height, width}};
  const auto pixel = [](float corner, int64_t length) {
    return static_cast<int64_t>(std::clamp(corner, 0.0f, 1.0f) * static_cast<float>(length));
  };
  std::vector<Rectangle> objects;
  objects.reserve(boxes.size());
  for (const Box& box : boxes) {
    objects.push_back({pixel(box.ymin, height), pixel(box.xmin, width), pixel(box.ymax, height),
                       pixel(box.xmax, width)});
  }
  return objects;
}

}  // namespace

std::vector<CropKind> SsdCrop::default_kinds() {
  std::vector<CropKind> kinds;
  for (const float share : {0.0f, 0.1f, 0.3f, 0.5f, 0.7f, 0.9f, 1.0f}) {
    kinds.push_back({.least_covered = share, .least_overlap = share});
  }
  return kinds;
}

Window random_crop(const SsdCrop& crop, size_t height, size_t width, std::vector<Box>& boxes,
                   RandomNumbers& numbers) {
  const Window whole{0, 0, height, width};
  if (crop.kinds.empty()) return whole;
  const CropKind& kind = crop.kinds[numbers.below(crop.kinds.size())];
  if (kind.keep_image > 0 && numbers.uniform() <= kind.keep_image) return whole;
  const auto rows = static_cast<int64_t>(height), columns = static_cast<int64_t>(width);
  const std::vector<Rectangle> objects = objects_of(boxes, rows, columns);
  Window window = whole;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const float aspect = numbers.between(kind.least_aspect, kind.most_aspect);
    const auto found = random_rectangle(rows, columns, kind, aspect, numbers);
    if (!found || !covers(*found, kind.least_covered, objects)) continue;
    window = {static_cast<size_t>(found->top), static_cast<size_t>(found->left),
              static_cast<size_t>(found->bottom - found->top),
              static_cast<size_t>(found->right - found->left)};
    break;
  }
  crop_boxes(boxes, window, height, width, kind.least_overlap);
  return window;
}

void crop_boxes(std::vector<Box>& boxes, const Window& window, size_t height, size_t width,
                float least_overlap) {
  const auto share = [](size_t part, size_t whole) {
    return static_cast<float>(part) / static_cast<float>(whole);
  };
  const Box frame{.ymin = share(window.top, height),
                  .xmin = share(window.left, width),
                  .ymax = share(window.top + window.height, height),
                  .xmax = share(window.left + window.width, width)};
  std::erase_if(boxes, [&](Box& box) {
    const float area = box.height() * box.width();
    const Box within{.ymin = std::max(box.ymin, frame.ymin),
                     .xmin = std::max(box.xmin, frame.xmin),
                     .ymax = std::min(box.ymax, frame.ymax),
                     .xmax = std::min(box.xmax, frame.xmax)};
    if (within.height() <= 0 || within.width() <= 0) return true;
    if (within.height() * within.width() / area < least_overlap) return true;
    const auto moved = [](float corner, float begin, float length) {
      return std::clamp((corner - begin) / length, 0.0f, 1.0f);
    };
    box.ymin = moved(box.ymin, frame.ymin, frame.height());
    box.xmin = moved(box.xmin, frame.xmin, frame.width());
    box.ymax = moved(box.ymax, frame.ymin, frame.height());
    box.xmax = moved(box.xmax, frame.xmin, frame.width());
    return box.height() <= 0 || box.width() <= 0;
  });
}

}  // namespace muster::images
