#pragma once

#include <fmt/format.h>

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::images {

// The name of a file or a record in messages. It is made only if there is a message.
class Name {
 public:
  // The text must live as long as the name.
  template <std::convertible_to<std::string_view> Text>
  Name(const Text& text) : make_([view = std::string_view(text)] { return std::string(view); }) {}
  template <std::invocable Make>
  Name(Make make) : make_(std::move(make)) {}

  std::string text() const { return make_(); }

 private:
  std::function<std::string()> make_;
};

}  // namespace muster::images

template <>
struct fmt::formatter<muster::images::Name> : fmt::formatter<std::string> {
  auto format(const muster::images::Name& name, fmt::format_context& context) const {
    return fmt::formatter<std::string>::format(name.text(), context);
  }
};
