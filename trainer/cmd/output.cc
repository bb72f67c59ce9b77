#include "trainer/cmd/output.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::cmd {

namespace {

// Names of classes and files may hold line breaks and escape sequences of terminals.
std::string plain(const Json& value) {
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return text;
}

void append_fields(const Json& object, const std::string& before, std::string& text) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object())
      append_fields(value, before + key + " ", text);
    else
      text += before + key + ": " + plain(value) + "\n";
  }
}

std::string numbers(const Json& list) {
  std::string text;
  for (const Json& number : list)
    text += fmt::format("{}{:.6g}", text.empty() ? "" : ", ", number.get<double>());
  return text;
}

std::string count_text(const Json& objects) {
  return fmt::format("{} {}", objects.size(), objects.size() == 1 ? "object" : "objects");
}

// Returns the class, the score of an object that was found, and the borders in pixels: those of the
// object times the height and the width.
std::string object_text(const Json& object, double height = 1, double width = 1) {
  const Json& box = object.at("box");
  const auto at = [&](const char* border) { return box.at(border).get<double>(); };
  const std::string score =
      object.contains("score") ? fmt::format(" with score {:.4f}", object.at("score").get<double>())
                               : "";
  return fmt::format("{}{}, x {:.0f} to {:.0f}, y {:.0f} to {:.0f}\n", plain(object.at("class")),
                     score, width * at("xmin"), width * at("xmax"), height * at("ymin"),
                     height * at("ymax"));
}

std::string sample_objects_text(const Json& one) {
  const double height = one.at("height").get<double>(), width = one.at("width").get<double>();
  const Json &found = one.at("predicted"), &labels = one.at("objects");
  std::string text = fmt::format("sample {}: {} (the labels have {})\n", plain(one.at("index")),
                                 count_text(found), labels.size());
  for (const Json& object : found) text += "  " + object_text(object, height, width);
  for (const Json& object : labels) text += "  label: " + object_text(object, height, width);
  return text;
}

std::string prediction_text(const Json& one) {
  if (one.contains("objects")) return sample_objects_text(one);
  const std::string sample = plain(one.at("index"));
  if (!one.contains("label"))
    return fmt::format("sample {}: {} (target {})\n", sample, numbers(one.at("predicted")),
                       numbers(one.at("target")));
  const bool right = one.at("predicted") == one.at("label");
  return fmt::format("sample {}: {} with probability {:.4f} (label {}{})\n", sample,
                     plain(one.at("class")), one.at("probability").get<double>(),
                     plain(one.at("labelClass")), right ? "" : ": wrong");
}

std::string picture_text(const Json& one) {
  const std::string picture = plain(one.at("picture"));
  if (one.contains("error")) return picture + ": error: " + plain(one.at("error")) + "\n";
  if (one.contains("class")) {
    std::string text = picture + ":";
    for (const Json& found : one.at("classes"))
      text += fmt::format("{} {} with probability {:.4f}", text.back() == ':' ? "" : ",",
                          plain(found.at("class")), found.at("probability").get<double>());
    return text + "\n";
  }
  const Json& objects = one.at("objects");
  std::string text = picture + ": " + count_text(objects) + "\n";
  for (const Json& object : objects) text += "  " + object_text(object);
  return text;
}

// Returns the fields of the whole object, and then the text of each prediction.
std::string lines_of(const Json& predictions, std::string (*text_of)(const Json&)) {
  Json head = predictions;
  head.erase("predictions");
  std::string text = fields_text(head);
  for (const Json& one : predictions.at("predictions")) text += text_of(one);
  return text;
}

}  // namespace

std::string fields_text(const Json& object) {
  std::string text;
  append_fields(object, "", text);
  return text;
}

std::string predictions_text(const Json& predictions) {
  return lines_of(predictions, prediction_text);
}

std::string pictures_text(const Json& predictions) {
  return lines_of(predictions, picture_text);
}

std::string json_text(const Json& object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster::cmd
