#pragma once

#include <span>

#include "trainer/data/sources/sample_format.h"
#include "trainer/detection/multiclass_suppressor.h"
#include "trainer/detection/objects.h"
#include "trainer/images/image.h"

namespace muster::loop {

// Objects that a detector finds with a lower score are not shown, unless the user says otherwise.
inline constexpr float kLeastScore = 0.3f;

// Returns how many of the objects, which are by falling score, have at least this score.
size_t count_with_score(std::span<const detection::Detection> found, float least);

// Draw the box of each object with the name of its class; of one that was found, its score too.
// Boxes are relative to the image.
void draw_found(images::Image& image, std::span<const detection::Detection> found,
                const data::SampleFormat& names);
void draw_true(images::Image& image, const detection::ObjectList& objects,
               const data::SampleFormat& names);

// Returns how thick lines must be to be seen in an image of this size, in pixels.
size_t line_width(const images::Image& image);

}  // namespace muster::loop
