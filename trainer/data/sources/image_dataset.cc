#include "trainer/data/sources/image_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/documents/document.h"
#include "common/error.h"
#include "common/program/log.h"
#include "trainer/data/images/class_notes.h"
#include "trainer/data/stages/sample.h"
#include "trainer/detection/objects.h"

namespace muster::data {

namespace {

// Replaces bytes that are not UTF-8. Names of folders may contain any bytes, but JSON may not.
std::vector<std::string> as_utf8(std::vector<std::string> names) {
  for (std::string& name : names)
    name = Json::parse(Json(name).dump(-1, ' ', false, Json::error_handler_t::replace))
               .get<std::string>();
  return names;
}

// Returns what is irregular about an image that is only read when it is used; "" if nothing is.
std::string oddity_of(const EncodedImage& image, const ImageSet& images, uint64_t index) {
  if (!image.oddity.empty() || image.problems == images::BoxProblems()) return image.oddity;
  BoxReport report;
  report.add(image.boxes, image.problems);
  return images.name(index) + ": " + report.text();
}

}  // namespace

ImageDataset::ImageDataset(std::unique_ptr<ImageSet> images, const spec::ImageSettings& settings,
                           ImageLabels labels, bool in_memory,
                           std::unique_ptr<CorruptSamples> corrupt)
    : Dataset({.size = images->size(),
               .format = {settings.shape(), compute::ElementType::uint8, settings.scale,
                          settings.offset, as_utf8(std::move(labels.names))},
               .label_kind = labels.kind}),
      images_(std::move(images)),
      corrupt_(std::move(corrupt)) {
  bool known = true;
  if (!has_objects()) labels_.resize(size());
  for (uint64_t i = 0; i < labels_.size() && known; ++i) {
    const std::optional<int32_t> label = images_->known_label(i);
    known = label.has_value();
    labels_[i] = label.value_or(0);
  }
  if (in_memory || (!known && labels.classes == 0)) {
    read_all(labels.classes, in_memory);
  } else {
    if (!known) labels_.clear();
    boxes_ = images_->boxes();
    if (boxes_) tell(*boxes_);
  }
  using detection::ObjectList;
  if (has_objects()) {
    traits.label_count = static_cast<int64_t>(ObjectList::floats(ObjectList::kMost));
    traits.object_classes = labels.classes;
  } else {
    traits.label_count = labels.classes > 0 ? labels.classes : std::ranges::max(labels_) + 1;
  }
}

void ImageDataset::read_all(int64_t classes, bool keep) {
  uint64_t most = 0;
  for (uint64_t i = 0; i < size() && keep; ++i) most += images_->most_bytes(i);
  if (keep) {
    kept_ = Storage(most);
    places_.resize(size());
    if (has_objects()) kept_objects_.resize(size());
  }
  EncodedImage image;
  boxes_ = images_->boxes();
  const bool known = boxes_.has_value();
  if (!known) boxes_.emplace();
  std::vector<bool> seen(static_cast<size_t>(classes));
  // A class whose id is not in the label map has its number as its name.
  const std::vector<std::string>& names = format().classes;
  for (size_t i = 0; has_objects() && i < names.size(); ++i)
    seen[i] = names[i] == std::to_string(i + 1);
  const auto see = [&](int32_t label) {
    if (static_cast<size_t>(label) < seen.size()) seen[static_cast<size_t>(label)] = true;
  };
  uint64_t end = 0;
  for (uint64_t i = 0; i < size(); ++i) {
    try {
      images_->read(i, image);
    } catch (const Invalid& error) {
      corrupt_->add(i, error.what());
      continue;
    }
    if (!labels_.empty()) labels_[i] = image.label;
    if (!has_objects()) see(image.label);
    for (const images::Box& box : image.boxes) see(box.label);
    boxes_->add(known ? std::vector<images::Box>() : image.boxes, image.problems);
    if (!image.oddity.empty()) corrupt_->add_odd(i, image.oddity);
    if (!keep || image.bytes.size() > most - end) continue;
    std::memcpy(kept_.bytes().data() + end, image.bytes.data(), image.bytes.size());
    places_[i] = {end, image.bytes.size()};
    end += image.bytes.size();
    if (has_objects()) kept_objects_[i] = image.boxes;
  }
  tell(*boxes_);
  if (images_->known_label(0)) return;  // then missing objects were already reported
  for (const std::string& note : notes_of_classes(seen, names, first_name())) log::warning(note);
}

std::string ImageDataset::first_name() const {
  return "the data that begin with " + images_->name(0);
}

void ImageDataset::require_objects() const {
  if (!has_objects() || (boxes_ ? !boxes_->has_none() : shows_object())) return;
  throw Invalid(
      fmt::format("data.train: expected an object in one of the {} images, of which {} is the "
                  "first, found none, or crowds only{}",
                  size(), images_->name(0), images_->box_hint()));
}

// Reads images until one shows an object that can be learned; usually it is the first one.
bool ImageDataset::shows_object() const {
  EncodedImage image;
  for (uint64_t i = 0; i < size(); ++i) {
    try {
      images_->read(i, image);
    } catch (const Invalid& error) {
      corrupt_->add(i, error.what());
      continue;
    }
    if (!std::ranges::all_of(image.boxes, &images::Box::crowd)) return true;
  }
  return false;
}

void ImageDataset::tell(const BoxReport& boxes) const {
  std::string text = boxes.text();
  if (text.empty() && has_objects() && boxes.has_none())
    text = "no image has an object, crowds not counted";
  if (!text.empty()) log::warning(first_name() + ": " + text);
}

void ImageDataset::begin(uint64_t index, Sample& sample) const {
  std::span<const std::byte> bytes;
  const bool is_kept = !places_.empty() && places_[index].size > 0;
  if (is_kept) {
    bytes = kept_.bytes().subspan(places_[index].begin, places_[index].size);
    if (has_objects()) sample.boxes = kept_objects_[index];
  } else {
    images_->read(index, sample.encoded);
    bytes = std::as_bytes(std::span(sample.encoded.bytes));
    sample.boxes = sample.encoded.boxes;
  }
  if (!has_objects()) sample.label = labels_.empty() ? sample.encoded.label : labels_[index];
  const std::vector<int64_t>& shape = format().shape;
  sample.begin(
      bytes, [this, index] { return describe(index); }, static_cast<size_t>(shape[0]),
      static_cast<size_t>(shape[1]), format().channels() == 1);
  if (!is_kept) sample.oddity = oddity_of(sample.encoded, *images_, index);
}

void ImageDataset::fill(const Use& use, const Augmentation& augmentation, Sample& workspace,
                        Row& row) const {
  uint64_t sample = use.sample;
  for (uint64_t tried = 1;; ++tried) {
    try {
      begin(sample, workspace);
      augmentation.apply(workspace, use.epoch, use.position, row.features_memory);
      break;
    } catch (const Invalid& error) {
      corrupt_->add(sample, error.what());
      if (tried >= use.shard.samples) throw;
    }
    sample = use.shard.begin + (sample + 1 - use.shard.begin) % use.shard.samples;
  }
  if (!workspace.oddity.empty()) corrupt_->add_odd(sample, workspace.oddity);
  row.features = row.features_memory;
  row.label = workspace.label;
  if (has_objects()) write_objects(workspace, row.target_memory);
  row.target = row.target_memory;
}

// Writes the objects that the stages have left.
void ImageDataset::write_objects(Sample& sample, float* target) const {
  const auto height = static_cast<float>(sample.original.height);
  const auto width = static_cast<float>(sample.original.width);
  sample.objects.clear();
  for (const images::Box& box : sample.boxes) {
    const float area = box.area > 0 ? box.area : box.height() * height * box.width() * width;
    sample.objects.push_back(
        {{box.ymin, box.xmin, box.ymax, box.xmax}, box.label, 1.0f, box.crowd, area});
  }
  detection::write_objects(height, width, sample.objects,
                           {target, static_cast<size_t>(label_count())});
}

int32_t ImageDataset::label(uint64_t index) const {
  if (!labels_.empty()) return labels_[index];
  EncodedImage image;
  images_->read(index, image);
  return image.label;
}

}  // namespace muster::data
