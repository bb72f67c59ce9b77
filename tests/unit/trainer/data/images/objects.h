#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/documents/json.h"
#include "tests/unit/trainer/data/images/pictures.h"
#include "trainer/data/batches/batcher.h"
#include "trainer/detection/objects.h"

namespace muster::data {

// An object of an image as COCO has it: x, y, width and height in pixels.
struct Annotation {
  int category = 1;
  std::vector<double> bbox;
  bool crowd = false;
};

// COCO's annotations of images and the files themselves, below a folder.
class CocoFolder {
 public:
  explicit CocoFolder(std::filesystem::path folder, std::vector<int> categories = {1})
      : folder_(std::move(folder)) {
    json_ = {
        {"images", Json::array()}, {"annotations", Json::array()}, {"categories", Json::array()}};
    for (const int id : categories)
      json_["categories"].push_back({{"id", id}, {"name", "category " + std::to_string(id)}});
  }

  void add(const images::Image& image, const std::vector<Annotation>& annotations) {
    const size_t number = json_["images"].size();
    const std::string name = std::to_string(number) + ".png";
    put(folder_ / "images" / name, images::encode_png(image.view()));
    json_["images"].push_back(
        {{"id", number}, {"file_name", name}, {"height", image.height}, {"width", image.width}});
    for (const Annotation& annotation : annotations)
      json_["annotations"].push_back({{"image_id", number},
                                      {"category_id", annotation.category},
                                      {"bbox", annotation.bbox},
                                      {"iscrowd", annotation.crowd ? 1 : 0}});
  }

  std::filesystem::path image(int number) const {
    return folder_ / "images" / (std::to_string(number) + ".png");
  }

  spec::DataSource source(const spec::ImageSettings& images = settings(8, 10)) const {
    put(folder_ / "annotations.json", json_.dump());
    spec::CocoSource coco;
    coco.annotations = folder_ / "annotations.json";
    coco.folder = folder_ / "images";
    coco.images = images;
    spec::DataSource source;
    source.kind = coco;
    return source;
  }

 private:
  const std::filesystem::path folder_;
  Json json_;
};

// What a batch says of its rows' objects.
struct RowObjects {
  float height = 0, width = 0;  // of the original image
  std::vector<detection::Object> objects;

  bool operator==(const RowObjects&) const = default;
};

inline std::vector<RowObjects> objects_of(const Dataset& dataset, const compute::Batch& batch) {
  std::vector<RowObjects> rows;
  for (const float* target : batch.targets) {
    const detection::ObjectList list({target, static_cast<size_t>(dataset.label_count())});
    RowObjects& row = rows.emplace_back(RowObjects{list.height(), list.width(), {}});
    for (size_t i = 0; i < list.size(); ++i) row.objects.push_back(list.at(i));
  }
  return rows;
}

// The objects of all samples, in their order.
inline std::vector<RowObjects> objects_of(const Dataset& dataset) {
  Batcher batcher(dataset, 2);
  BatchBuffer buffer(dataset, 2);
  std::vector<RowObjects> all;
  for (uint64_t number = 0; number < batcher.shards().batches_per_epoch(); ++number)
    for (RowObjects& row : objects_of(dataset, batcher.fill(buffer, 0, number)))
      all.push_back(std::move(row));
  return all;
}

}  // namespace muster::data
