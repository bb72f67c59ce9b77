#include "trainer/checkpoint/start/other_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace muster::checkpoint {

namespace {

struct Format {
  std::string_view extension;
  std::string_view what;
  std::string_view tensors;  // Python expression for the tensors by name; {} is the file
  std::string_view module;   // the submodule of safetensors
};

constexpr std::string_view kKeras =
    "{{w.path: w.numpy() for w in keras.models.load_model(\"{}\").weights}}";
constexpr std::string_view kPytorch = "torch.load(\"{}\", weights_only=True)";
constexpr Format kFormats[] = {
    {".h5", "weights of Keras", kKeras, "numpy"},
    {".hdf5", "weights of Keras", kKeras, "numpy"},
    {".keras", "a model of Keras", kKeras, "numpy"},
    {".pt", "weights of PyTorch", kPytorch, "torch"},
    {".pth", "weights of PyTorch", kPytorch, "torch"},
    {".bin", "weights of PyTorch", kPytorch, "torch"},
    {".onnx", "a model in the format ONNX",
     "{{t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(\"{}\").graph.initializer}}",
     "numpy"},
    {".npz", "arrays of NumPy", "dict(numpy.load(\"{}\"))", "numpy"}};

}  // namespace

std::string other_format(const std::filesystem::path& file) {
  std::string extension = file.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* format = std::ranges::find(kFormats, extension, &Format::extension);
  if (format == std::end(kFormats)) return "";
  return fmt::format(
      "what is named as {}, which Muster does not read: in Python, safetensors.{}.save_file({}, "
      "\"model.safetensors\") makes a safetensors file of it, and initializeOptions.rename leads "
      "its names to those of the model",
      format->what, format->module,
      fmt::format(fmt::runtime(format->tensors), file.filename().string()));
}

}  // namespace muster::checkpoint
