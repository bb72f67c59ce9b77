// Microseconds that one thread takes for a JPEG of 640x480 pixels on its way into a training batch:
// decoding, resizing to floats of 300x300, and what training changes in it.
// `bench_images [FILE]`: FILE in place of the picture that this makes.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/system/file.h"
#include "trainer/images/colour.h"
#include "trainer/images/crop.h"
#include "trainer/images/decode.h"
#include "trainer/images/encode.h"
#include "trainer/images/resize.h"

namespace muster::images {
namespace {

constexpr size_t kSide = 300;

// The middle of all numbers.
class Middle : public RandomNumbers {
 public:
  double uniform() override { return 0.5; }
  uint64_t below(uint64_t bound) override { return bound / 2; }
};

// A picture with edges, gradients and some noise: about 60 kB, as photographs have.
std::string picture() {
  Image image;
  image.resize(480, 640);
  uint32_t noise = 1;
  for (size_t y = 0; y < image.height; ++y) {
    for (size_t x = 0; x < image.width; ++x) {
      noise = noise * 1664525 + 1013904223;
      const double wave = std::sin(static_cast<double>(x * y) / 5000) * 60;
      const double square = (x / 40 + y / 30) % 2 == 0 ? 40 : 0;
      for (size_t c = 0; c < 3; ++c) {
        const double value = 100 + wave + square + static_cast<double>(noise >> 28) +
                             static_cast<double>(c * x) / 16;
        image.row(y)[3 * x + c] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return encode_jpeg(image.view(), 85);
}

void measure(const char* name, const std::function<void()>& action) {
  std::vector<double> times;
  for (int run = 0; run < 101; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    action();
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count());
  }
  std::ranges::sort(times);
  std::printf("%-32s median %7.0f us, least %7.0f us\n", name, times[times.size() / 2], times[0]);
}

void run(const std::string& jpeg) {
  const auto bytes = std::as_bytes(std::span(jpeg));
  std::printf("%zu bytes\n", jpeg.size());
  Decoder decoder;
  Resizer resizer;
  Image image, resized;
  std::vector<float> pixels(kSide * kSide * 3);
  Middle numbers;
  measure("decode", [&] { decoder.decode(bytes, "picture", {}, image); });
  measure("resize", [&] { resizer.resize(image.view(), kSide, kSide, resized); });
  measure("distort colours", [&] { distort_colour(pixels, {}, numbers); });
  measure("decode and resize", [&] {
    decoder.decode(bytes, "picture", {.needed_height = kSide, .needed_width = kSide}, image);
    resizer.resize(image.view(), kSide, kSide, resized);
  });
  measure("decode, crop and resize", [&] {
    decoder.decode(bytes, "picture", {}, image);
    std::vector<Box> boxes = {{.ymin = 0.25f, .xmin = 0.25f, .ymax = 0.75f, .xmax = 0.75f}};
    const Window window = random_crop(SsdCrop(), image.height, image.width, boxes, numbers);
    resizer.resize(image.view(window.top, window.left, window.height, window.width), kSide, kSide,
                   resized);
  });
}

}  // namespace
}  // namespace muster::images

int main(int argc, char** argv) {
  muster::images::run(argc > 1 ? muster::read_file(argv[1]) : muster::images::picture());
  return 0;
}
