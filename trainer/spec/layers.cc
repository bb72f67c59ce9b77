#include "trainer/spec/layers.h"

#include <cctype>
#include <map>
#include <set>

#include "common/documents/json.h"
#include "common/text/nearest.h"

namespace muster::spec {

namespace {

std::string snake_case(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c))) result += '_';
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

// Returns the fields within an entry of model.layers.
const Json& fields_of(const Json& entry) {
  return member(entry, layer_kind(entry));
}

class LayerChecker {
 public:
  LayerChecker(const std::string& path, const Json& layers, Problems& problems)
      : path_(path), layers_(layers), names_(layer_names(layers)), problems_(problems) {
    for (size_t i = 0; i < layers_.size(); ++i) all_named_ = all_named_ && is_named(i);
  }

  void run() {
    for (size_t i = 0; i < layers_.size(); ++i) check(i);
    if (!all_named_ || !all_linked_) return;
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      if (used_.count(names_[i]) != 0) continue;
      problems_.report(child_path(path_, i), "a layer whose output a later one takes",
                       "'" + names_[i] + "', which no layer names among its inputs");
    }
  }

 private:
  std::string path_of(size_t index) const {
    const std::string entry = child_path(path_, index), kind = layer_kind(layers_[index]);
    return kind.empty() ? entry : child_path(entry, kind);
  }

  // Whether the layer's name, by which other layers refer to it, is known.
  bool is_named(size_t index) const {
    return problems_.is_sound(child_path(path_of(index), "name"));
  }

  void check(size_t index) {
    const std::string path = path_of(index);
    if (!problems_.is_sound(path)) return;
    const Json& fields = fields_of(layers_[index]);
    check_inputs(index, fields, child_path(path, "inputs"));
    const std::string& name = names_[index];
    if (is_named(index) && (name == "input" || !earlier_.insert(name).second)) {
      problems_.report(child_path(path, "name"), "a name that no other layer has",
                       "'" + name + "'");
    }
    check_initializer(fields, path, "kernelInitializer");
    check_initializer(fields, path, "biasInitializer");
  }

  void check_inputs(size_t index, const Json& fields, const std::string& path) {
    all_linked_ = all_linked_ && problems_.is_whole(path);
    const Json& inputs = member(fields, "inputs");
    if (!inputs.is_array() || inputs.empty()) {
      if (index > 0) used_.insert(names_[index - 1]);
      return;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].is_string()) continue;
      const std::string input = inputs[i].get<std::string>();
      used_.insert(input);
      if (input == "input" || earlier_.count(input) != 0 || !all_named_) continue;
      std::vector<std::string> known{"input"};
      known.insert(known.end(), earlier_.begin(), earlier_.end());
      problems_.report(child_path(path, i), "the name of an earlier layer or input",
                       "'" + input + "'", did_you_mean(input, known));
      all_linked_ = false;
    }
  }

  void check_initializer(const Json& fields, const std::string& path, const char* field) {
    const std::string initializer_path = child_path(path, field);
    const Json& initializer = member(fields, field);
    const std::string name = string_or(initializer, "name", "");
    if (name.empty() || !problems_.is_sound(child_path(initializer_path, "name"))) return;
    const bool takes_scale =
        name == "normal" || name == "truncatedNormal" || name == "uniform" || name == "constant";
    const Json& scale = member(initializer, "scale");
    const std::string scale_path = child_path(initializer_path, "scale");
    if (!problems_.is_sound(scale_path)) return;
    if (takes_scale && scale.is_null()) {
      problems_.report(scale_path, "a number, for the initializer is " + name, "nothing");
    } else if (!takes_scale && !scale.is_null()) {
      problems_.report(scale_path, "no scale, for the initializer is " + name, describe(scale));
    } else if (scale.is_number() && name != "constant" && scale.get<double>() < 0) {
      problems_.report(scale_path, "a number of at least 0", describe(scale));
    }
  }

  const std::string& path_;
  const Json& layers_;
  const std::vector<std::string> names_;
  Problems& problems_;
  bool all_named_ = true;
  bool all_linked_ = true;  // whether every input refers to an existing output
  std::set<std::string> earlier_;
  std::set<std::string> used_;
};

}  // namespace

std::string layer_kind(const Json& entry) {
  return entry.is_object() && entry.size() == 1 ? entry.begin().key() : "";
}

std::vector<std::string> layer_names(const Json& layers) {
  std::set<std::string> taken{"input"};
  for (const Json& entry : layers) taken.insert(string_or(fields_of(entry), "name", ""));
  std::map<std::string, int> counts;
  std::vector<std::string> names;
  for (const Json& entry : layers) {
    const std::string kind = snake_case(layer_kind(entry));
    int& count = counts[kind];
    ++count;
    std::string name = string_or(fields_of(entry), "name", "");
    while (name.empty()) {
      const std::string candidate = kind + "_" + std::to_string(count);
      if (taken.insert(candidate).second) {
        name = candidate;
      } else {
        ++count;
      }
    }
    names.push_back(std::move(name));
  }
  return names;
}

void check_layers(const Document& document, const std::string& path, Problems& problems) {
  const Json* layers = document.find(path);
  if (layers == nullptr || !layers->is_array()) return;
  LayerChecker(path, *layers, problems).run();
}

}  // namespace muster::spec
