#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/compute/models/object_finder.h"
#include "trainer/data/sources/sample_format.h"
#include "trainer/images/resize.h"

namespace muster::loop {

// A picture of a sample of an evaluation: on the left the objects that a detector has found, on the
// right the true objects.
struct Picture {
  std::string png;
  size_t height = 0;
  size_t width = 0;
};

// Makes pictures of the first samples of an evaluation.
class PictureTaker {
 public:
  // Returns null if no pictures can be made: for other models than detectors, and for samples that
  // are not pictures.
  static std::unique_ptr<PictureTaker> create(const compute::Graph& graph,
                                              const data::SampleFormat& format, size_t most);

  // Takes the samples of a batch; `outputs` are those of Engine::evaluate.
  void add(const compute::Batch& batch, std::span<const float> outputs);
  std::vector<Picture> take() { return std::move(pictures_); }

 private:
  PictureTaker(const compute::Graph& graph, const data::SampleFormat& format, size_t most);
  Picture draw(const void* features, std::span<const float> target, std::span<const float> outputs);

  compute::ObjectFinder finder_;
  const data::SampleFormat format_;
  const size_t most_;
  const size_t target_floats_;
  images::Resizer resizer_;
  std::vector<Picture> pictures_;
};

// A function that shows a picture elsewhere, under a tag of TensorBoard.
using ShowPicture = std::function<void(const std::string& tag, const Picture& picture)>;

// Writes the pictures of an evaluation of the data `name` ("validation") to evaluations/pictures/
// below `storage` (unless empty), replacing earlier pictures. Shows each picture as
// "validation_pictures/0" and so on. `show` may be empty. Throws WriteError.
void publish_pictures(const std::filesystem::path& storage, const std::string& name,
                      std::span<const Picture> pictures, const ShowPicture& show);

}  // namespace muster::loop
