#pragma once

#include <span>

#include "trainer/data/sources/sample_format.h"
#include "trainer/detection/multiclass_suppressor.h"
#include "trainer/detection/objects.h"
#include "trainer/images/image.h"

namespace muster::loop {

// The lowest score of shown objects, unless the user gives another.
inline constexpr float kLeastScore = 0.3f;

// Returns the number of objects with at least this score. Precondition: `found` is sorted by
// falling score.
size_t count_with_score(std::span<const detection::Detection> found, float least);

// Draw the box of each object with the name of its class, and for a found object also its score.
// Boxes are relative to the image.
void draw_found(images::Image& image, std::span<const detection::Detection> found,
                const data::SampleFormat& names);
void draw_true(images::Image& image, const detection::ObjectList& objects,
               const data::SampleFormat& names);

// Returns the thickness of lines, in pixels, that is visible in an image of this size.
size_t line_width(const images::Image& image);

}  // namespace muster::loop
