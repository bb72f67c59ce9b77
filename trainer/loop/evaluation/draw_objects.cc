#include "trainer/loop/evaluation/draw_objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/images/draw.h"

namespace muster::loop {

namespace {

// Pixels of the image's shorter side for each pixel of a line's thickness.
constexpr size_t kPixelsOfLine = 300;

void draw(images::Image& image, const detection::Box& box, int32_t label, const std::string& text) {
  images::draw_box(image, {.ymin = box.ymin, .xmin = box.xmin, .ymax = box.ymax, .xmax = box.xmax},
                   text, images::colour_of(label), line_width(image));
}

}  // namespace

size_t line_width(const images::Image& image) {
  return std::max<size_t>(1, std::min(image.height, image.width) / kPixelsOfLine);
}

size_t count_with_score(std::span<const detection::Detection> found, float least) {
  const auto end = std::ranges::find_if(
      found, [&](const detection::Detection& one) { return !(one.score >= least); });
  return static_cast<size_t>(end - found.begin());
}

void draw_found(images::Image& image, std::span<const detection::Detection> found,
                const data::SampleFormat& names) {
  for (size_t i = found.size(); i-- > 0;) {  // the best object is drawn last, over the others
    const detection::Detection& one = found[i];
    draw(image, one.box, one.label,
         fmt::format("{} {:.2f}", names.class_name(static_cast<size_t>(one.label)), one.score));
  }
}

void draw_true(images::Image& image, const detection::ObjectList& objects,
               const data::SampleFormat& names) {
  for (size_t i = 0; i < objects.size(); ++i) {
    const detection::Object object = objects.at(i);
    draw(image, object.box, object.label, names.class_name(static_cast<size_t>(object.label)));
  }
}

}  // namespace muster::loop
