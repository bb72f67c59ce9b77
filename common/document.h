#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

using Json = nlohmann::ordered_json;

// A YAML (or JSON) text as a JSON value that remembers where each part stood. Scalars are typed by
// YAML 1.2's core schema: 12 is an integer, "12" a string, null/~ null, true/false a boolean.
// Limits, so that hostile input stays cheap: 4 MiB of text, 64 levels, aliases refused.
class Document {
 public:
  // `source` names the text in errors ("job.yaml"). Throws Invalid ("job.yaml:3:7: ...") on malformed
  // YAML, duplicate keys, several documents in one text, or a limit passed.
  static Document parse(std::string_view text, std::string source);
  static Document load(const std::filesystem::path& path);

  const Json& value() const { return value_; }
  Json& value() { return value_; }

  // "job.yaml:12" for a dotted path such as "spec.training.layers[2].dense.units": its own line, or
  // that of the nearest parent which has one; "job.yaml" for a value that came from elsewhere.
  std::string locate(std::string_view path) const;

  // Sets a value by dotted path, making objects on the way, as `--set spec.training.epochs=1` does;
  // `text` is read as a YAML scalar or flow value. Throws Invalid if the path crosses a scalar.
  void set(std::string_view path, std::string_view text);

 private:
  std::string source_;
  Json value_;
  std::map<std::string, int> lines_;
};

}  // namespace muster
