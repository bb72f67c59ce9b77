#pragma once

#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace muster {

// Describes a metric as docs/reference/metrics.md or the answer of /metrics does.
struct MetricShape {
  std::string type;
  std::set<std::string> labels;  // without those of the process, as role and index
  bool operator==(const MetricShape&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const MetricShape& shape) {
  out << shape.type << " with the labels";
  for (const std::string& label : shape.labels) out << " " << label;
  return out;
}
using MetricShapes = std::map<std::string, MetricShape>;

inline std::set<std::string> label_names(const std::string& labels, const std::regex& label) {
  std::set<std::string> names;
  for (std::sregex_iterator at(labels.begin(), labels.end(), label), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

// Reads the tables of the page; those of "## /metrics" leave "muster_trainer_" out.
inline MetricShapes documented_metrics(const std::string& page) {
  static const std::regex row("\\| (`[^|]*`[^|]*) \\| (gauge|counter|histogram) \\| .*");
  static const std::regex name("`([a-z_]+)(\\{[^}]*\\})?`"), label("([a-z_]+)=");
  MetricShapes shapes;
  std::string prefix;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) prefix = line == "## /metrics" ? "muster_trainer_" : "";
    std::smatch found;
    if (!std::regex_match(line, found, row)) continue;
    const std::string cell = found[1];
    for (std::sregex_iterator at(cell.begin(), cell.end(), name), end; at != end; ++at)
      shapes[prefix + (*at)[1].str()] = {found[2], label_names((*at)[2], label)};
  }
  return shapes;
}

// Reads an answer of /metrics. `of_process` are labels that do not count. A metric without help has
// the type "helpless".
inline MetricShapes served_metrics(const std::string& text,
                                   const std::set<std::string>& of_process = {}) {
  static const std::regex comment("# (HELP|TYPE) ([a-zA-Z_:]+) (.*)");
  static const std::regex sample("([a-zA-Z_:]+)(\\{.*\\})? .*"), label("([a-z_]+)=\"");
  MetricShapes shapes;
  std::set<std::string> helped;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, comment)) {
      if (found[1] == "TYPE") shapes[found[2]].type = found[3];
      if (found[1] == "HELP" && found[3].length() > 5) helped.insert(found[2]);
    } else if (std::regex_match(line, found, sample)) {
      std::string name = found[1];
      static const std::regex part("_(bucket|sum|count)$");
      if (!shapes.contains(name)) name = std::regex_replace(name, part, "");
      for (const std::string& one : label_names(found[2], label))
        if (one != "le" && !of_process.contains(one)) shapes[name].labels.insert(one);
    }
  }
  for (auto& [name, shape] : shapes)
    if (!helped.contains(name)) shape.type = "helpless";
  return shapes;
}

}  // namespace muster
