#include "trainer/data/images/image_dataset.h"

#include <algorithm>
#include <cstring>

#include "common/error.h"
#include "trainer/data/stages/stage.h"

namespace muster::data {

ImageDataset::ImageDataset(std::unique_ptr<ImageSet> images, const spec::ImageSettings& settings,
                           int64_t label_count, bool in_memory,
                           std::unique_ptr<CorruptSamples> corrupt)
    : images_(std::move(images)),
      settings_(settings),
      shape_(settings.shape()),
      sample_bytes_(static_cast<uint64_t>(settings.height * settings.width * settings.channels)),
      label_count_(label_count),
      labels_(images_->size()),
      corrupt_(std::move(corrupt)) {
  bool known = true;
  for (uint64_t i = 0; i < size() && known; ++i) {
    const std::optional<int32_t> label = images_->known_label(i);
    known = label.has_value();
    labels_[i] = label.value_or(0);
  }
  if (in_memory || !known) read_all(in_memory);
  if (label_count_ == 0) label_count_ = std::ranges::max(labels_) + 1;
}

void ImageDataset::read_all(bool keep) {
  uint64_t most = 0;
  for (uint64_t i = 0; i < size() && keep; ++i) most += images_->most_bytes(i);
  if (keep) {
    kept_ = Storage(most);
    places_.resize(size());
  }
  std::string bytes;
  uint64_t end = 0;
  for (uint64_t i = 0; i < size(); ++i) {
    try {
      labels_[i] = images_->read(i, bytes);
    } catch (const Invalid& error) {
      report_corrupt(i, error.what());
      continue;
    }
    if (!keep || bytes.size() > most - end) continue;
    std::memcpy(kept_.bytes().data() + end, bytes.data(), bytes.size());
    places_[i] = {end, bytes.size()};
    end += bytes.size();
  }
}

void ImageDataset::begin(uint64_t index, Sample& sample) const {
  std::span<const std::byte> bytes;
  if (!places_.empty() && places_[index].size > 0) {
    bytes = kept_.bytes().subspan(places_[index].begin, places_[index].size);
  } else {
    images_->read(index, sample.encoded);
    bytes = std::as_bytes(std::span(sample.encoded));
  }
  sample.begin(bytes, describe(index), static_cast<size_t>(settings_.height),
               static_cast<size_t>(settings_.width), settings_.channels == 1);
}

void ImageDataset::report_corrupt(uint64_t index, const std::string& why) const {
  corrupt_->add(index, why);
}

}  // namespace muster::data
