#pragma once

#include <cstdint>

namespace muster::compute {

struct Graph;   // graph.h
struct Window;  // models/model_spec.h

// How a window moves over one sample's image of [height, width, channels]: the Geometry of
// layers/window.h in plain numbers.
struct Sliding {
  int64_t height = 0, width = 0, channels = 0;
  int64_t out_height = 0, out_width = 0;
  int64_t window_height = 1, window_width = 1;
  int64_t down = 1, right = 1;  // strides
  int64_t top = 0, left = 0;    // zeros before the image
};

// Returns how `window` moves over a value, which is an image.
Sliding sliding_of(const Window& window, const Graph& graph, int value);
// Returns a window that covers the whole of a value, which is an image.
Window whole_image(const Graph& graph, int value);

inline int64_t places_of(const Sliding& s) {
  return s.out_height * s.out_width;
}

}  // namespace muster::compute
