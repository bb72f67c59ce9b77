// Writes one of everything that others read, for tests/python/check_formats.py:
//   write_formats write FOLDER   checkpoints of 1 and 3 shards, the export, an event file
//   write_formats read FILE      the weights' digest of a safetensors file made elsewhere

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>

#include "trainer/checkpoint/start/take_weights.h"
#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/images/encode.h"
#include "trainer/summary/event_writer.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using compute::ParameterLayout;
using compute::ParameterTensor;
using compute::Range;
using compute::Segment;

ParameterLayout layout() {
  auto tensor = [](const char* name, std::vector<int64_t> shape, Segment segment) {
    ParameterTensor t;
    t.name = name;
    t.shape = std::move(shape);
    t.segment = segment;
    return t;
  };
  return ParameterLayout({tensor("hidden/kernel", {7, 70}, Segment::trainable),
                          tensor("hidden/bias", {70}, Segment::trainable),
                          tensor("temperature", {}, Segment::trainable),
                          tensor("frozen/kernel", {3, 5}, Segment::frozen),
                          tensor("norm/mean", {5}, Segment::state)});
}

// Element i of the tensor that is number n of the layout is 1000 n + i / 2.
std::vector<float> values_of(const ParameterLayout& layout) {
  std::vector<float> values(layout.size(), 0.0f);
  for (size_t n = 0; n < layout.tensors().size(); ++n) {
    const ParameterTensor& tensor = layout.tensors()[n];
    for (size_t i = 0; i < tensor.count; ++i) {
      values[tensor.offset + i] = 1000.0f * static_cast<float>(n) + 0.5f * static_cast<float>(i);
    }
  }
  return values;
}

void write_checkpoint(checkpoint::Store& store, uint64_t step, int shards) {
  const ParameterLayout parameters = layout();
  const std::vector<float> values = values_of(parameters);
  checkpoint::Manifest manifest;
  manifest.position.step = step;
  manifest.generation = 1;
  manifest.model = "formats";
  manifest.layout_fingerprint = parameters.fingerprint();
  const fs::path temporary = store.begin(step);
  const std::vector<Range> ranges = parameters.partition(shards);
  for (int shard = 0; shard < shards; ++shard) {
    const Range range = ranges[static_cast<size_t>(shard)];
    const auto part = std::span(values).subspan(range.begin, range.size());
    for (const auto& [kind, prefix] : {std::pair("model", ""), std::pair("optimizer", "m/")}) {
      const fs::path path = temporary / checkpoint::shard_file_name(kind, shard, shards);
      manifest.files.push_back(checkpoint::write_safetensors(
          path, checkpoint::pieces_of(parameters, range, part, prefix), {{"format", "muster"}}));
    }
  }
  store.publish(temporary, manifest);
}

void write(const fs::path& folder) {
  checkpoint::Store store(folder / "checkpoints", 5);
  write_checkpoint(store, 1, 1);
  write_checkpoint(store, 3, 3);
  const ParameterLayout parameters = layout();
  const std::vector<float> values = values_of(parameters);
  checkpoint::export_model(folder, parameters, values, {{"batchSize", 32}}, {{"shape", {7}}});
  summary::EventWriter events(folder / "events");
  for (uint64_t step = 0; step < 50; ++step) {
    events.scalar("train/loss", step, 1.0 / static_cast<double>(step + 1));
  }
  events.scalar("train/loss", 50, std::nan(""));
  events.scalar("validation/accuracy", 50, 0.75);
  images::Image image;
  image.resize(3, 5);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(5 * i);
  events.image("pictures/0", 50, images::encode_png(image.view()), image.height, image.width);
  std::cout << checkpoint::weights_digest(parameters, values) << "\n";
}

void read(const fs::path& file) {
  const ParameterLayout parameters = layout();
  std::vector<float> values(parameters.size());
  checkpoint::take_weights("initializeFrom", file, parameters, values);
  std::cout << checkpoint::weights_digest(parameters, values) << "\n";
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) try {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (mode == "write") {
    muster::write(argv[2]);
  } else if (mode == "read") {
    muster::read(argv[2]);
  } else {
    std::cerr << "usage: write_formats write FOLDER | read FILE\n";
    return 64;
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 65;
}
