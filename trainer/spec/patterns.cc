#include "trainer/spec/patterns.h"

#include <algorithm>
#include <optional>

#include "common/documents/json.h"
#include "common/text/pattern.h"
#include "trainer/compute/layers/layer.h"

namespace muster::spec {

namespace {

// Returns the pattern; for a text that is not a pattern, reports it and returns nothing.
std::optional<Pattern> pattern_at(const std::string& path, const Json& text, Problems& problems) {
  if (!text.is_string() || !problems.is_whole(path)) return std::nullopt;
  const std::string expression = text.get<std::string>(), flaw = Pattern::flaw(expression);
  if (flaw.empty()) return Pattern(expression);
  problems.report(path, "a regular expression in RE2's syntax", describe(text), flaw);
  return std::nullopt;
}

bool has_parameters(const compute::LayerSpec& layer) {
  return std::visit(
      []<typename Kind>(const Kind&) {
        return std::is_same_v<Kind, compute::Dense> || std::is_same_v<Kind, compute::Conv2d> ||
               std::is_same_v<Kind, compute::DepthwiseConv2d> ||
               std::is_same_v<Kind, compute::BatchNormalization>;
      },
      layer.kind);
}

}  // namespace

void check_pattern(const std::string& path, const Json& text, Problems& problems) {
  pattern_at(path, text, problems);
}

void check_patterns(const std::string& path, const Json& list, Problems& problems) {
  for (size_t i = 0; list.is_array() && i < list.size(); ++i)
    check_pattern(child_path(path, i), list[i], problems);
}

void check_renames(const std::string& path, const Json& list, Problems& problems) {
  for (size_t i = 0; list.is_array() && i < list.size(); ++i) {
    const std::string step = child_path(path, i);
    const auto from = pattern_at(child_path(step, "from"), member(list[i], "from"), problems);
    const Json& to = member(list[i], "to");
    if (!from || !to.is_string() || !problems.is_whole(child_path(step, "to"))) continue;
    const std::string flaw = from->flaw_of(to.get<std::string>());
    if (flaw.empty()) continue;
    problems.report(child_path(step, "to"), "a text with \\1 and so on for groups of `from`",
                    describe(to), flaw);
  }
}

void check_frozen(const std::string& path, const Json& list, const compute::ModelSpec& model,
                  Problems& problems) {
  if (!list.is_array()) return;
  std::vector<compute::LayerSpec> layers = model.layers;
  std::erase_if(layers, [](const auto& layer) { return !has_parameters(layer); });
  if (layers.empty()) return;
  for (size_t i = 0; i < list.size(); ++i) {
    const Pattern pattern(list[i].get<std::string>());
    const auto matches = [&](const auto& layer) { return pattern.matches(layer.name); };
    if (std::ranges::any_of(layers, matches)) continue;
    problems.report(child_path(path, i),
                    "a pattern that matches the name of a layer with parameters, such as " +
                        layers.front().name,
                    describe(list[i]));
  }
  if (std::ranges::none_of(layers, &compute::LayerSpec::trainable))
    problems.report(path, "at least one layer with parameters that is not frozen",
                    "none of " + std::to_string(layers.size()));
}

}  // namespace muster::spec
