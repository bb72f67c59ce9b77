#include "common/job/metric_name.h"

#include <cctype>

namespace muster {

namespace {

std::string split(std::string_view name, char between) {
  std::string words;
  for (const char letter : name) {
    const bool begins = std::isupper(static_cast<unsigned char>(letter)) != 0;
    if (begins && !words.empty()) words += between;
    words += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return words;
}

}  // namespace

std::string metric_field(std::string_view data, std::string_view metric) {
  std::string field(metric);
  if (!field.empty())
    field.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(field.front())));
  return std::string(data) + field;
}

std::string metric_tag(std::string_view data, std::string_view metric) {
  return (data.empty() ? "" : std::string(data) + "_") + split(metric, '_');
}

std::string metric_words(std::string_view metric) {
  std::string words = split(metric, ' ');
  const auto number = words.find_first_of("0123456789");
  // The number of "f1" and "r2" belongs to the letter.
  const bool is_name = number != std::string::npos && (number < 2 || words[number - 2] == ' ');
  if (number != std::string::npos && !is_name) words.insert(number, " ");
  return words;
}

}  // namespace muster
