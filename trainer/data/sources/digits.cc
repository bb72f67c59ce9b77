#include "trainer/data/sources/digits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "trainer/data/files/idx.h"
#include "trainer/data/files/source_file.h"
#include "trainer/data/order/random.h"
#include "trainer/detection/box.h"
#include "trainer/images/encode.h"
#include "trainer/images/resize.h"
#include "trainer/records/example.h"
#include "trainer/records/record_writer.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;

constexpr int kClasses = 10;
struct Range {
  uint64_t least, most;
};
constexpr Range kCanvases{1, 1'000'000}, kSizes{32, 2048}, kMostDigits{1, 100}, kShards{1, 1000};
constexpr const char* kLabelMap = "label_map.pbtxt";
constexpr int kTries = 50;            // attempts to find a free place for a digit
constexpr float kMostOverlap = 0.1f;  // largest IoU of two digits' boxes

struct Digits {
  size_t height = 0, width = 0;
  std::vector<std::byte> pixels;
  std::vector<uint8_t> labels;

  size_t size() const { return labels.size(); }
  const std::byte* at(size_t digit) const { return &pixels[digit * height * width]; }
};

Digits read_digits(const DigitsOptions& options) {
  Digits digits;
  SourceFile label_file(options.labels, kLabels);
  IdxLabels labels = read_idx_labels(label_file.stream());
  SourceFile image_file(options.images, kImages);
  const IdxShape shape = read_idx_shape(image_file.stream());
  require_as_many(labels, options.labels.string(), shape.samples, options.images.string());
  if (shape.sample.size() != 2 || labels.largest >= kClasses || labels.labels.size() < 6)
    throw Invalid(
        fmt::format("{}: expected at least 6 images of digits, each of two axes and "
                    "labelled 0 to 9",
                    options.images.string()));
  digits.height = static_cast<size_t>(shape.sample[0]);
  digits.width = static_cast<size_t>(shape.sample[1]);
  digits.labels = std::move(labels.labels);
  digits.pixels.resize(digits.size() * digits.height * digits.width);
  SourceFile again(options.images, kImages);  // read_idx_images begins with the header
  read_idx_images(again.stream(), shape, 0, digits.pixels);
  return digits;
}

detection::Box corners(const images::Box& box) {
  return {box.ymin, box.xmin, box.ymax, box.xmax};
}

struct Canvas {
  images::Image image;
  std::vector<images::Box> boxes;  // labels are ids of the label map
};

class Painter {
 public:
  Painter(const DigitsOptions& options, const Digits& digits)
      : options_(options), digits_(digits) {}

  // Paints a canvas with digits from [begin, end). The picture depends only on `number`.
  const Canvas& paint(uint64_t number, size_t begin, size_t end) {
    random_ = std::make_unique<CounterRandom>(options_.seed, Stream::augmentation, number);
    counter_ = 0;
    canvas_.boxes.clear();
    canvas_.image.resize(options_.size, options_.size);
    fill_ground();
    const uint64_t count = 1 + below(options_.most_digits);
    for (uint64_t i = 0; i < count; ++i) add_digit(begin + below(end - begin));
    return canvas_;
  }

 private:
  uint64_t below(uint64_t bound) { return random_->below(counter_++, bound); }
  double between(double least, double most) {
    return least + (most - least) * random_->uniform(counter_++);
  }

  void fill_ground() {
    const uint64_t red = below(64), green = below(64), blue = below(64);
    uint8_t* pixel = canvas_.image.pixels.data();
    for (size_t i = 0; i < options_.size * options_.size; ++i) {
      const uint64_t noise = below(32);
      for (const uint64_t level : {red, green, blue})
        *pixel++ = static_cast<uint8_t>(level + noise);
    }
  }

  void add_digit(size_t digit) {
    const auto side = static_cast<double>(std::max(digits_.height, digits_.width));
    const double most = std::min(2.0, static_cast<double>(options_.size) / side);
    resize(digit, between(std::min(1.0, most), most));
    const uint8_t colour[3] = {strong(), strong(), strong()};
    for (int tried = 0; tried < kTries; ++tried) {
      const size_t top = below(options_.size - scaled_.height + 1);
      const size_t left = below(options_.size - scaled_.width + 1);
      const images::Box box = box_at(top, left, digits_.labels[digit] + 1);
      if (overlaps(box)) continue;
      draw(top, left, colour);
      canvas_.boxes.push_back(box);
      return;
    }
  }

  uint8_t strong() { return static_cast<uint8_t>(128 + below(128)); }

  void resize(size_t digit, double scale) {
    grey_.resize(digits_.height, digits_.width);
    const std::byte* from = digits_.at(digit);
    for (size_t i = 0; i < grey_.pixels.size(); ++i)
      grey_.pixels[i] = std::to_integer<uint8_t>(from[i / 3]);
    const auto scaled = [&](size_t size) {
      return std::max<size_t>(1, static_cast<size_t>(static_cast<double>(size) * scale));
    };
    resizer_.resize(grey_.view(), scaled(digits_.height), scaled(digits_.width), scaled_);
  }

  // Returns the box around the digit's pixels for a digit whose upper left corner is at this place.
  images::Box box_at(size_t top, size_t left, int32_t label) const {
    size_t first_row = scaled_.height, last_row = 0, first_column = scaled_.width, last_column = 0;
    for (size_t y = 0; y < scaled_.height; ++y) {
      for (size_t x = 0; x < scaled_.width; ++x) {
        if (scaled_.row(y)[x * 3] < 64) continue;
        first_row = std::min(first_row, y);
        last_row = std::max(last_row, y + 1);
        first_column = std::min(first_column, x);
        last_column = std::max(last_column, x + 1);
      }
    }
    const auto side = static_cast<float>(options_.size);
    const auto share = [&](size_t from, size_t pixels) {
      return static_cast<float>(from + pixels) / side;
    };
    images::Box box{share(top, first_row), share(left, first_column), share(top, last_row),
                    share(left, last_column), label};
    box.area = box.height() * side * box.width() * side;
    return box;
  }

  bool overlaps(const images::Box& box) const {
    return box.height() <= 0 || box.width() <= 0 ||
           std::ranges::any_of(canvas_.boxes, [&](const images::Box& other) {
             return detection::iou(corners(box), corners(other)) > kMostOverlap;
           });
  }

  void draw(size_t top, size_t left, const uint8_t (&colour)[3]) {
    for (size_t y = 0; y < scaled_.height; ++y) {
      uint8_t* to = canvas_.image.row(top + y) + left * 3;
      for (size_t x = 0; x < scaled_.width; ++x) {
        const unsigned cover = scaled_.row(y)[x * 3];
        for (size_t c = 0; c < 3; ++c, ++to)
          *to = static_cast<uint8_t>((cover * colour[c] + (255 - cover) * *to + 127) / 255);
      }
    }
  }

  const DigitsOptions& options_;
  const Digits& digits_;
  std::unique_ptr<CounterRandom> random_;
  uint64_t counter_ = 0;
  Canvas canvas_;
  images::Image grey_, scaled_;
  images::Resizer resizer_;
};

records::LabelMap label_map() {
  std::vector<records::LabelMap::Entry> entries;
  for (int32_t digit = 0; digit < kClasses; ++digit)
    entries.push_back({digit + 1, std::to_string(digit), std::to_string(digit)});
  return records::LabelMap(std::move(entries), "digits");
}

std::string label_map_text(const records::LabelMap& labels) {
  std::string text;
  for (const auto& entry : labels.entries())
    text += fmt::format("item {{\n  id: {}\n  name: '{}'\n}}\n", entry.id, entry.name);
  return text;
}

// Whether an earlier call has written to the folder.
bool is_ours(const fs::path& folder) {
  std::error_code ignored;
  const fs::path file = folder / kLabelMap;
  return fs::is_regular_file(file, ignored) && read_file(file) == label_map_text(label_map());
}

void remove_matching(const fs::path& folder, const std::regex& names) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (std::regex_match(at->path().filename().string(), names)) found.push_back(at->path());
  for (const fs::path& file : found)
    if (!fs::remove(file, error) && error) throw WriteError(file.string() + ": " + error.message());
}

// The canvases of a part, in both formats.
class PartWriter {
 public:
  PartWriter(const DigitsOptions& options, std::string name, uint64_t shards)
      : coco_(options.output / "coco"), name_(std::move(name)), labels_(label_map()) {
    muster::create_directories(coco_ / name_);
    for (uint64_t i = 0; i < shards; ++i)
      writers_.push_back(std::make_unique<records::RecordWriter>(
          options.output / fmt::format("{}-{:05}-of-{:05}.tfrecord", name_, i, shards)));
    json_ = {
        {"images", Json::array()}, {"annotations", Json::array()}, {"categories", Json::array()}};
    for (const auto& entry : labels_.entries())
      json_["categories"].push_back({{"id", entry.id}, {"name", entry.name}});
  }

  void write(uint64_t number, const Canvas& canvas) {
    records::DetectionExample example;
    example.image = images::encode_jpeg(canvas.image.view(), 95, images::Chroma::full);
    example.format = "jpeg";
    example.filename = fmt::format("{:06}.jpg", number);
    example.source_id = std::to_string(number);
    example.height = static_cast<int64_t>(canvas.image.height);
    example.width = static_cast<int64_t>(canvas.image.width);
    example.boxes = canvas.boxes;
    writers_[number % writers_.size()]->write(records::write_example(example, &labels_));
    write_file_atomically(coco_ / name_ / example.filename, example.image);
    json_["images"].push_back({{"id", number},
                               {"file_name", example.filename},
                               {"height", example.height},
                               {"width", example.width}});
    for (const images::Box& box : canvas.boxes) add_annotation(number, canvas.image, box);
  }

  void finish() {
    for (const auto& writer : writers_) writer->finish();
    write_file_atomically(coco_ / (name_ + ".json"), json_.dump(1) + "\n");
  }

 private:
  void add_annotation(uint64_t image, const images::Image& canvas, const images::Box& box) {
    const auto height = static_cast<double>(canvas.height),
               width = static_cast<double>(canvas.width);
    const auto pixels = [](float share, double size) { return std::round(double(share) * size); };
    const double x = pixels(box.xmin, width), y = pixels(box.ymin, height);
    const double right = pixels(box.xmax, width), bottom = pixels(box.ymax, height);
    json_["annotations"].push_back({{"id", json_["annotations"].size() + 1},
                                    {"image_id", image},
                                    {"category_id", box.label},
                                    {"bbox", {x, y, right - x, bottom - y}},
                                    {"area", (right - x) * (bottom - y)},
                                    {"iscrowd", 0}});
  }

  const fs::path coco_;
  const std::string name_;
  const records::LabelMap labels_;
  std::vector<std::unique_ptr<records::RecordWriter>> writers_;
  Json json_;
};

void require(Range range, const char* option, uint64_t found) {
  if (found < range.least || found > range.most)
    throw Invalid(
        fmt::format("{}: expected {} to {}, found {}", option, range.least, range.most, found),
        kUsage);
}

}  // namespace

void make_digits(const DigitsOptions& options) {
  require(kCanvases, "--train", options.train);
  require(kCanvases, "--validation", options.validation);
  require(kSizes, "--size", options.size);
  require(kMostDigits, "--most-digits", options.most_digits);
  require(kShards, "--shards", options.shards);
  const Digits digits = read_digits(options);
  if (const size_t most = std::max(digits.height, digits.width); options.size < most)
    throw Invalid(fmt::format("--size: expected at least {}, the size of a digit, found {}", most,
                              options.size),
                  kUsage);
  muster::create_directories(options.output);
  if (is_ours(options.output)) {
    for (const char* part : {"train", "validation"}) {
      remove_matching(options.output,
                      std::regex(std::string(part) + "-\\d{5}-of-\\d{5}\\.tfrecord"));
      remove_matching(options.output / "coco" / part, std::regex("\\d{6}\\.jpg"));
    }
  }
  write_file_atomically(options.output / kLabelMap, label_map_text(label_map()));
  const size_t border = digits.size() * 5 / 6;
  Painter painter(options, digits);
  PartWriter train(options, "train", options.shards);
  for (uint64_t i = 0; i < options.train; ++i) train.write(i, painter.paint(i, 0, border));
  train.finish();
  PartWriter validation(options, "validation", 1);
  for (uint64_t i = 0; i < options.validation; ++i)
    validation.write(i, painter.paint(options.train + i, border, digits.size()));
  validation.finish();
}

}  // namespace muster::data
