#pragma once

#include <span>

#include "trainer/images/random_numbers.h"

namespace muster::images {

// Changes of an image of RGB floats from 0 to 255, pixel after pixel, 3 values each. The results
// equal those of tf.image for the image divided by 255, multiplied by 255 and clipped to 0 to 255.

// Adds `delta` * 255 to every value.
void adjust_brightness(std::span<float> image, float delta);
// Multiplies the distance of each value from its channel's mean.
void adjust_contrast(std::span<float> image, float factor);
// Turns each pixel's hue by `delta`, in [-1, 1]; 1 is the whole circle.
void adjust_hue(std::span<float> image, float delta);
// Multiplies each pixel's saturation, which stays at most 1.
void adjust_saturation(std::span<float> image, float factor);

// The order of the changes: 0 is brightness, saturation, hue, contrast; 1 is brightness, contrast,
// saturation, hue.
struct ColourDistortion {
  int order = 0;
  float brightness = 32.0f / 255.0f;  // largest change in either direction
  float least_contrast = 0.5f;
  float most_contrast = 1.5f;
  float hue = 0.2f;  // largest change in either direction
  float least_saturation = 0.5f;
  float most_saturation = 1.5f;
};

// The Object Detection API's random_distort_color. Takes four random numbers.
void distort_colour(std::span<float> image, const ColourDistortion& settings,
                    RandomNumbers& numbers);

}  // namespace muster::images
