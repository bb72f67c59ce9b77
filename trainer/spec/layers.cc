#include "trainer/spec/layers.h"

#include <cctype>
#include <map>
#include <set>

#include "common/json.h"

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

// The layer's own fields.
const Json& fields_of(const Json& entry) {
  return member(entry, layer_kind(entry));
}

class Checker {
 public:
  Checker(const Document& document, const std::string& path, const Json& layers)
      : document_(document), path_(path), layers_(layers), names_(layer_names(layers)) {}

  std::vector<Problem> run() {
    for (size_t i = 0; i < layers_.size(); ++i) check(i);
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      if (used_.count(names_[i]) == 0) {
        report(child_path(path_, i), "a layer whose output a later one takes",
               "'" + names_[i] + "', which no layer names among its inputs", "");
      }
    }
    return std::move(problems_);
  }

 private:
  void report(const std::string& path, std::string expected, std::string found, std::string hint) {
    problems_.push_back(
        make_problem(document_, path, std::move(expected), std::move(found), std::move(hint)));
  }

  void check(size_t index) {
    const std::string kind = layer_kind(layers_[index]);
    if (kind.empty()) return;
    const std::string path = child_path(child_path(path_, index), kind);
    const Json& fields = fields_of(layers_[index]);
    check_inputs(index, fields, path);
    const std::string& name = names_[index];
    if (name == "input" || !earlier_.insert(name).second) {
      report(child_path(path, "name"), "a name that no other layer has", "'" + name + "'", "");
    }
    check_initializer(fields, path, "kernelInitializer");
    check_initializer(fields, path, "biasInitializer");
  }

  void check_inputs(size_t index, const Json& fields, const std::string& path) {
    const Json& inputs = member(fields, "inputs");
    if (!inputs.is_array() || inputs.empty()) {
      if (index > 0) used_.insert(names_[index - 1]);
      return;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].is_string()) continue;
      const std::string input = inputs[i].get<std::string>();
      used_.insert(input);
      if (input == "input" || earlier_.count(input) != 0) continue;
      std::vector<std::string> known{"input"};
      known.insert(known.end(), earlier_.begin(), earlier_.end());
      report(child_path(child_path(path, "inputs"), i), "the name of an earlier layer or input",
             "'" + input + "'", did_you_mean(input, known));
    }
  }

  void check_initializer(const Json& fields, const std::string& path, const char* field) {
    const Json& initializer = member(fields, field);
    const std::string name = string_or(initializer, "name", "");
    if (name.empty()) return;
    const bool takes_scale = name == "normal" || name == "uniform" || name == "constant";
    const Json& scale = member(initializer, "scale");
    const std::string scale_path = child_path(child_path(path, field), "scale");
    if (takes_scale && scale.is_null()) {
      report(scale_path, "a number, for the initializer is " + name, "nothing", "");
    } else if (!takes_scale && !scale.is_null()) {
      report(scale_path, "no scale, for the initializer is " + name, describe(scale), "");
    } else if (scale.is_number() && name != "constant" && scale.get<double>() < 0) {
      report(scale_path, "a number of at least 0", describe(scale), "");
    }
  }

  const Document& document_;
  const std::string& path_;
  const Json& layers_;
  const std::vector<std::string> names_;
  std::set<std::string> earlier_;
  std::set<std::string> used_;
  std::vector<Problem> problems_;
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

std::vector<Problem> check_layers(const Document& document, const std::string& path) {
  const Json* layers = document.find(path);
  if (layers == nullptr || !layers->is_array()) return {};
  return Checker(document, path, *layers).run();
}

}  // namespace muster::spec
