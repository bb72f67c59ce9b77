#include "trainer/compute/models/ssd.h"

#include <algorithm>

#include "common/error.h"
#include "trainer/compute/layers/layer.h"
#include "trainer/compute/models/mobilenet.h"
#include "trainer/detection/objects.h"

namespace muster::compute {
namespace {

constexpr int64_t kLeastFilters = 16;
constexpr Initializer kHeadInitializer{InitializerKind::truncated_normal, 0.03f};
constexpr int64_t kExtraFilters[] = {512, 256, 256, 128};

// The beginnings of the names of the two convolutions of extra `i`, as TF-Slim has them:
// Conv2d_13_pointwise_1_Conv2d_2_1x1_ and Conv2d_13_pointwise_2_Conv2d_2_3x3_s2_, and so on.
struct ExtraNames {
  std::string narrow;
  std::string wide;
};
ExtraNames names_of_extra(size_t i) {
  const std::string before = "Conv2d_13_pointwise_", number = "Conv2d_" + std::to_string(i + 2);
  return {before + "1_" + number + "_1x1_", before + "2_" + number + "_3x3_s2_"};
}

class SsdBuilder {
 public:
  explicit SsdBuilder(const SsdOptions& options) : options_(options) {
    loss_.classes = options.classes;
    loss_.classification = options.classification;
  }

  ModelSpec build() {
    const MobileNetOptions backbone{options_.depth_multiplier, kLeastFilters,
                                    options_.normalization_momentum};
    layers_ = mobilenet_backbone(backbone);
    loss_.grids = {"Conv2d_11_pointwise_relu6", "Conv2d_13_pointwise_relu6"};
    add_extras(backbone);
    const std::vector<int> anchors = detection::anchors_per_cell(loss_.anchors);
    for (size_t i = 0; i < loss_.grids.size(); ++i) {
      add_head(i, "boxes", anchors[i] * 4);
      add_head(i, "classes", anchors[i] * (options_.classes + 1));
    }
    std::vector<std::string> inputs;
    for (const char* part : {"boxes", "classes"})
      for (size_t i = 0; i < loss_.grids.size(); ++i)
        inputs.push_back(head(i) + "_" + part + "_flat");
    layers_.push_back({"predictions", Concatenate{}, std::move(inputs), true});
    ModelSpec model{"ssd-mobilenet-v1", {300, 300, 3}, 0, std::move(layers_), std::move(loss_)};
    using detection::ObjectList;
    model.label_count = static_cast<int64_t>(ObjectList::floats(ObjectList::kMost));
    return model;
  }

 private:
  static std::string head(size_t i) { return "BoxPredictor_" + std::to_string(i); }

  void add_extras(const MobileNetOptions& backbone) {
    for (size_t i = 0; i < std::size(kExtraFilters); ++i) {
      const ExtraNames names = names_of_extra(i);
      const int64_t filters = kExtraFilters[i];
      add(backbone, names.narrow + std::to_string(filters / 2), filters / 2,
          {{1, 1}, {1, 1}, Padding::same});
      add(backbone, names.wide + std::to_string(filters), filters, {{3, 3}, {2, 2}, Padding::same});
      loss_.grids.push_back(layers_.back().name);
    }
  }

  void add(const MobileNetOptions& backbone, const std::string& name, int64_t filters,
           const Window& window) {
    add_normalized(layers_, backbone, name,
                   normalized_convolution(backbone, filters, window, kHeadInitializer));
  }

  void add_head(size_t i, const std::string& part, int64_t filters) {
    Conv2d convolution;
    convolution.filters = filters;
    convolution.kernel_initializer = kHeadInitializer;
    const std::string name = head(i) + "_" + part;
    layers_.push_back({name, convolution, {loss_.grids[i]}, true});
    layers_.push_back({name + "_flat", Flatten{}, {}, true});
  }

  const SsdOptions& options_;
  std::vector<LayerSpec> layers_;
  SsdLoss loss_;
};

std::vector<int64_t> shape_of(const Graph& graph, const std::string& layer) {
  for (const Node& node : graph.nodes)
    if (node.name == layer) return graph.values[static_cast<size_t>(node.output)].shape;
  throw Invalid("ssd: expected a layer \"" + layer + "\", found none of this name");
}

}  // namespace

ModelSpec ssd_mobilenet(const SsdOptions& options) {
  return SsdBuilder(options).build();
}

std::vector<Rename> names_of_any_depth() {
  std::vector<Rename> steps;
  for (size_t i = 0; i < std::size(kExtraFilters); ++i) {
    const ExtraNames names = names_of_extra(i);
    const auto add = [&](const std::string& name, int64_t filters) {
      steps.push_back({"^" + name + "\\d+", name + std::to_string(filters)});
    };
    add(names.narrow, kExtraFilters[i] / 2);
    add(names.wide, kExtraFilters[i]);
  }
  return steps;
}

std::vector<float> anchors_of(const SsdLoss& loss, const Graph& graph) {
  std::vector<detection::FeatureMap> maps;
  for (const std::string& grid : loss.grids) {
    const std::vector<int64_t> shape = shape_of(graph, grid);
    if (shape.size() != 3)
      throw Invalid("ssd: layer \"" + grid + "\": expected an image, found " + to_string(shape));
    maps.push_back({static_cast<int>(shape[0]), static_cast<int>(shape[1])});
  }
  const std::vector<int64_t>& image = graph.values[0].shape;
  std::vector<float> anchors = detection::ssd_anchors(
      loss.anchors, maps, static_cast<int>(image[0]), static_cast<int>(image[1]));
  const auto count = static_cast<int64_t>(anchors.size() / 4);
  const int64_t wanted = count * (4 + 1 + loss.classes);
  const int64_t found = graph.values[static_cast<size_t>(graph.output)].width;
  if (wanted != found)
    throw Invalid("ssd: expected " + std::to_string(wanted) + " outputs, 4 codes and " +
                  std::to_string(1 + loss.classes) + " logits for each of " +
                  std::to_string(count) + " anchors; found " + std::to_string(found));
  return anchors;
}

}  // namespace muster::compute
