#include "trainer/loop/evaluation/pictures.h"

#include <algorithm>
#include <cmath>

#include "common/system/file.h"
#include "trainer/compute/graph.h"
#include "trainer/detection/objects.h"
#include "trainer/images/encode.h"
#include "trainer/loop/evaluation/draw_objects.h"

namespace muster::loop {

namespace {

// The limits of an image's longer side for drawing, in pixels. Letters cannot be read in a smaller
// image.
constexpr float kLeastLength = 320, kMostLength = 640;
constexpr size_t kGap = 4;  // between the two images of a picture

images::Image image_of(const void* features, const data::SampleFormat& format) {
  images::Image image;
  image.resize(static_cast<size_t>(format.shape[0]), static_cast<size_t>(format.shape[1]));
  const auto* from = static_cast<const uint8_t*>(features);
  // Bytes of the image for each byte of the sample.
  const size_t step = format.channels() == 3 ? 1 : 3;
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = from[i / step];
  return image;
}

// Returns the image with its original proportions.
images::Image in_proportion(const images::Image& image, const detection::ObjectList& objects,
                            images::Resizer& resizer) {
  const float height = std::max(1.0f, objects.height()), width = std::max(1.0f, objects.width());
  const float longer = std::max(height, width);
  const float factor = std::clamp(longer, kLeastLength, kMostLength) / longer;
  const auto scaled = [&](float length) {
    return static_cast<size_t>(std::max(1L, std::lround(length * factor)));
  };
  images::Image resized;
  resizer.resize(image.view(), scaled(height), scaled(width), resized);
  return resized;
}

images::Image side_by_side(const images::Image& left, const images::Image& right) {
  images::Image both;
  both.resize(left.height, left.width + kGap + right.width);
  std::ranges::fill(both.pixels, uint8_t{255});
  for (size_t y = 0; y < both.height; ++y) {
    std::copy_n(left.row(y), left.stride(), both.row(y));
    std::copy_n(right.row(y), right.stride(), both.row(y) + left.stride() + 3 * kGap);
  }
  return both;
}

}  // namespace

std::unique_ptr<PictureTaker> PictureTaker::create(const compute::Graph& graph,
                                                   const data::SampleFormat& format, size_t most) {
  const bool detects = std::holds_alternative<compute::SsdLoss>(graph.loss);
  if (!detects || most == 0 || !format.is_picture()) return nullptr;
  return std::unique_ptr<PictureTaker>(new PictureTaker(graph, format, most));
}

PictureTaker::PictureTaker(const compute::Graph& graph, const data::SampleFormat& format,
                           size_t most)
    : finder_(std::get<compute::SsdLoss>(graph.loss), graph),
      format_(format),
      most_(most),
      target_floats_(static_cast<size_t>(graph.label_count)) {}

void PictureTaker::add(const compute::Batch& batch, std::span<const float> outputs) {
  const size_t width = finder_.outputs();
  for (size_t row = 0; row < static_cast<size_t>(batch.rows) && pictures_.size() < most_; ++row)
    pictures_.push_back(draw(batch.features[row], {batch.targets[row], target_floats_},
                             outputs.subspan(row * width, width)));
}

Picture PictureTaker::draw(const void* features, std::span<const float> target,
                           std::span<const float> outputs) {
  const detection::ObjectList objects(target);
  images::Image found = in_proportion(image_of(features, format_), objects, resizer_);
  images::Image there = found;
  const auto detections = finder_.find(outputs);
  draw_found(found, detections.first(count_with_score(detections, kLeastScore)), format_);
  draw_true(there, objects, format_);
  const images::Image both = side_by_side(found, there);
  return {images::encode_png(both.view()), both.height, both.width};
}

void publish_pictures(const std::filesystem::path& storage, const std::string& name,
                      std::span<const Picture> pictures, const ShowPicture& show) {
  if (pictures.empty()) return;
  const std::filesystem::path folder = storage / "evaluations" / "pictures";
  if (!storage.empty()) muster::create_directories(folder);
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (!storage.empty())
      write_file_atomically(folder / (name + "-" + std::to_string(i) + ".png"), pictures[i].png);
    if (show) show(name + "_pictures/" + std::to_string(i), pictures[i]);
  }
}

}  // namespace muster::loop
