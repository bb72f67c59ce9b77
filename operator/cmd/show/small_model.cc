#include "operator/cmd/show/small_model.h"

#include <fmt/format.h>

#include <vector>

#include "common/error.h"
#include "trainer/checkpoint/files/safetensors.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

// More than the size of such a small model, including the `training` in its header.
constexpr uintmax_t kMostBytes = 256 * 1024;

}  // namespace

Json few_parameters(const fs::path& model) {
  std::error_code error;
  const uintmax_t bytes = fs::is_regular_file(model, error) ? fs::file_size(model, error) : 0;
  if (error || bytes == 0 || bytes > kMostBytes) return nullptr;
  try {
    const checkpoint::SafetensorsFile file(model);
    Json parameters = Json::object();
    size_t count = 0;
    for (const auto& tensor : file.tensors()) {
      count += tensor.values.size();
      if (count > kFew) return nullptr;
      parameters[tensor.name] = std::vector<float>(tensor.values.begin(), tensor.values.end());
    }
    return parameters;
  } catch (const Invalid&) {
    return nullptr;  // like an absent file: other readers report the error
  } catch (const Unavailable&) {
    return nullptr;
  }
}

std::string parameters_text(const Json& parameters) {
  std::string text;
  for (const auto& [name, values] : parameters.items()) {
    const auto numbers = values.get<std::vector<double>>();
    const std::string list = fmt::format("{:.6g}", fmt::join(numbers, ", "));
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        numbers.size() == 1 ? list : "[" + list + "]");
  }
  return text;
}

}  // namespace muster::cmd
