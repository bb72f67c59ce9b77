#include "trainer/cmd/output.h"

#include <fmt/format.h>

namespace muster::cmd {

namespace {

std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
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

std::string prediction_text(const Json& one) {
  const std::string sample = plain(one.at("index"));
  if (!one.contains("label"))
    return fmt::format("sample {}: {} (target {})\n", sample, numbers(one.at("predicted")),
                       numbers(one.at("target")));
  const bool right = one.at("predicted") == one.at("label");
  return fmt::format("sample {}: {} with probability {:.4f} (label {}{})\n", sample,
                     plain(one.at("predicted")), one.at("probability").get<double>(),
                     plain(one.at("label")), right ? "" : ": wrong");
}

}  // namespace

std::string fields_text(const Json& object) {
  std::string text;
  append_fields(object, "", text);
  return text;
}

std::string predictions_text(const Json& predictions) {
  Json head = predictions;
  head.erase("predictions");
  std::string text = fields_text(head);
  for (const Json& one : predictions.at("predictions")) text += prediction_text(one);
  return text;
}

}  // namespace muster::cmd
