#include "trainer/loop/commands/predict_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/layers/layer.h"
#include "trainer/compute/models/object_finder.h"
#include "trainer/data/images/class_folders.h"
#include "trainer/data/stages/sample.h"
#include "trainer/images/draw.h"
#include "trainer/images/encode.h"
#include "trainer/loop/commands/loaded_model.h"

namespace muster::loop {

namespace fs = std::filesystem;

namespace {

struct PictureFile {
  std::string name;  // as the user gave it
  fs::path path;
  std::string error;  // the error of a folder without pictures
};

std::vector<PictureFile> list_pictures(const PictureOptions& options) {
  std::vector<PictureFile> files;
  for (const fs::path& given : options.pictures) {
    const fs::path path = options.from / given;
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back({given.string(), path, ""});
      continue;
    }
    std::vector<fs::path> found;
    std::string problem =
        given.string() + ": expected " + data::kImageEndings + " files in it, found none";
    try {
      std::string passed_over;
      found = data::images_in(path, &passed_over);
      if (!passed_over.empty())
        log::warning(given.string() + ": files that are not read: " + passed_over);
    } catch (const Invalid& unreadable) {
      problem = unreadable.what();
    }
    if (found.empty()) files.push_back({given.string(), path, problem});
    for (const fs::path& file : found)
      files.push_back({(given / file.filename()).string(), file, ""});
  }
  return files;
}

// Fills in the model's input, and returns the format of its samples.
data::SampleFormat complete(LoadedModel& model) {
  const bool kept = model.samples.is_object() && !model.samples.empty();
  spec::TrainingSpec& spec = model.training.spec;
  data::SampleFormat format = kept ? data::parse_format(model.samples, model.file + ": samples")
                                   : data::format_of(spec.data.train);
  if (!format.is_picture())
    throw Invalid(model.file + ": expected a model that was trained on images, found one whose " +
                  "samples are " + compute::to_string(format.shape) + " of " +
                  (format.type == compute::ElementType::uint8 ? "bytes" : "floats"));
  std::vector<int64_t>& input = spec.model.input_shape;
  if (input.empty()) input = format.shape;
  if (compute::element_count(input) != compute::element_count(format.shape))
    throw Invalid(model.file + ": samples: shape: expected as many elements as the model's input " +
                  compute::to_string(input) + ", found " + compute::to_string(format.shape));
  take_label_count_from_layers(spec.model);
  spec.batch_size = 1;
  return format;
}

// Returns where to write a copy of a picture: under the picture's name, with a number if the name
// is taken.
fs::path path_of_copy(const fs::path& folder, const fs::path& picture) {
  fs::path copy = folder / (picture.stem().string() + ".png");
  for (int number = 2; is_there(copy); ++number)
    copy = folder / fmt::format("{}-{}.png", picture.stem().string(), number);
  return copy;
}

class PicturePredictor {
 public:
  PicturePredictor(LoadedModel& model, data::SampleFormat format, const PictureOptions& options)
      : engine_(*model.engine),
        format_(std::move(format)),
        options_(options),
        elements_(static_cast<size_t>(*compute::element_count(format_.shape))),
        outputs_(static_cast<size_t>(engine_.output_count())) {
    const compute::ModelSpec& spec = model.training.spec.model;
    if (const auto* detector = std::get_if<compute::SsdLoss>(&spec.loss))
      finder_.emplace(*detector, compute::build_graph(spec));
    if (!options_.drawn.empty()) muster::create_directories(options.from / options_.drawn);
  }

  Json predict(const PictureFile& picture) {
    Json json = {{"picture", picture.name}};
    try {
      if (!picture.error.empty()) throw Invalid(picture.error);
      const std::string bytes = data::read_image_file(picture.path);
      compute(bytes, picture.name);
      images::Image copy;
      if (!options_.drawn.empty())
        decoder_.decode(std::as_bytes(std::span(bytes)), picture.name, {}, copy);
      json.update(finder_ ? objects(copy) : classes(copy));
      if (!options_.drawn.empty()) json["drawn"] = write(copy, picture);
    } catch (const Invalid& error) {
      log::error(error.what());
      json["error"] = error.what();
    }
    return json;
  }

 private:
  // Makes a sample of the picture, in the same way as ImageDataset for a training, and fills
  // outputs_.
  void compute(const std::string& bytes, const std::string& name) {
    sample_.begin(std::as_bytes(std::span(bytes)), name, static_cast<size_t>(format_.shape[0]),
                  static_cast<size_t>(format_.shape[1]), format_.channels() == 1);
    sample_.make_pixels();
    if (!sample_.oddity.empty()) log::warning(sample_.oddity);
    sample_.write(elements_.data());
    const void* features = elements_.data();
    compute::Batch batch;
    batch.rows = 1;
    batch.type = format_.type;
    batch.features = std::span(&features, 1);
    batch.scale = format_.scale;
    batch.offset = format_.offset;
    engine_.predict(batch, outputs_);
  }

  Json classes(images::Image& copy) {
    std::vector<size_t> order(outputs_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](size_t label) { return outputs_[label]; });
    Json list = Json::array();
    for (size_t i = 0; i < std::min(order.size(), options_.most_classes); ++i)
      list.push_back({{"class", format_.class_name(order[i])},
                      {"label", order[i]},
                      {"probability", outputs_[order[i]]}});
    const std::string best = format_.class_name(order[0]);
    const float probability = outputs_[order[0]];
    if (!copy.pixels.empty())
      images::draw_box(copy, {.ymin = 0, .xmin = 0, .ymax = 1, .xmax = 1},
                       fmt::format("{} {:.2f}", best, probability),
                       images::colour_of(static_cast<int32_t>(order[0])), line_width(copy));
    return {{"class", best}, {"probability", probability}, {"classes", list}};
  }

  Json objects(images::Image& copy) {
    const auto all = finder_->find(outputs_);
    const auto found = all.first(count_with_score(all, options_.least_score));
    if (!copy.pixels.empty()) draw_found(copy, found, format_);
    const auto height = static_cast<double>(sample_.original.height);
    const auto width = static_cast<double>(sample_.original.width);
    Json list = Json::array();
    for (const detection::Detection& one : found)
      list.push_back({{"class", format_.class_name(static_cast<size_t>(one.label))},
                      {"label", one.label},
                      {"score", one.score},
                      {"box",
                       {{"xmin", width * one.box.xmin},
                        {"ymin", height * one.box.ymin},
                        {"xmax", width * one.box.xmax},
                        {"ymax", height * one.box.ymax}}}});
    return {
        {"height", sample_.original.height}, {"width", sample_.original.width}, {"objects", list}};
  }

  // Returns the path of the copy, with the folder as the user named it.
  std::string write(const images::Image& copy, const PictureFile& picture) {
    const fs::path path = path_of_copy(options_.from / options_.drawn, picture.path);
    write_file_atomically(path, images::encode_png(copy.view()));
    return (options_.drawn / path.filename()).string();
  }

  compute::Engine& engine_;
  const data::SampleFormat format_;
  const PictureOptions& options_;
  std::vector<std::byte> elements_;  // elements of a sample
  std::vector<float> outputs_;
  std::optional<compute::ObjectFinder> finder_;  // only for a detector
  data::Sample sample_;
  images::Decoder decoder_;
};

}  // namespace

Json predict_pictures(const fs::path& where, const PictureOptions& options) {
  const std::vector<PictureFile> pictures = list_pictures(options);
  data::SampleFormat format;
  LoadedModel model = load_model(where, [&](LoadedModel& loading) { format = complete(loading); });
  PicturePredictor predictor(model, std::move(format), options);
  Json list = Json::array();
  for (const PictureFile& picture : pictures) list.push_back(predictor.predict(picture));
  Json json = model.source;
  json["predictions"] = std::move(list);
  return json;
}

}  // namespace muster::loop
