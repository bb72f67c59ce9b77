#include "trainer/checkpoint/start/other_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

#include "common/text/byte_order_mark.h"

namespace muster::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr size_t kBeginning = 4096;  // bytes of a file that are looked at

// A format that Python makes safetensors of.
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

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string beginning_of(const fs::path& file) {
  std::string bytes(kBeginning, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(stream.gcount()));
  return bytes;
}

// Returns the name of the first entry of a zip archive; "" if it has none.
std::string_view first_entry(std::string_view zip) {
  constexpr size_t kHeader = 30, kLength = 26;
  if (zip.size() < kHeader) return "";
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(zip[at]); };
  return zip.substr(kHeader, byte(kLength) + size_t{256} * byte(kLength + 1));
}

// Returns the extension of the format that a file begins as; "" if it is none of kFormats.
std::string_view extension_by_content(std::string_view bytes) {
  if (bytes.starts_with("\x89HDF\r\n\x1a\n")) return ".h5";
  if (bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5) return ".pt";
  if (!bytes.starts_with("PK\x03\x04")) return "";
  const std::string_view entry = first_entry(bytes);
  if (entry.ends_with(".npy")) return ".npz";
  if (entry.ends_with("/data.pkl") || entry.ends_with("/.format_version")) return ".pt";
  return entry == "metadata.json" || entry == "config.json" ? ".keras" : "";
}

std::string text_of_format(const Format& format, const fs::path& file, std::string_view extension) {
  std::string name = file.filename().string(), first;
  if (extension != format.extension) {
    name = file.stem().string() + std::string(format.extension);
    first = fmt::format("give it the name {}; then, ", name);
  }
  return fmt::format(
      "what {} {}, which Muster does not read: {}in Python, safetensors.{}.save_file({}, "
      "\"model.safetensors\") makes a safetensors file of it, and initializeOptions.rename leads "
      "its names to those of the model",
      first.empty() ? "is named as" : "begins as", format.what, first, format.module,
      fmt::format(fmt::runtime(format.tensors), name));
}

// Returns what a text in JSON is.
std::string text_of_json(const fs::path& file, std::string_view bytes) {
  const std::string name = file.filename().string();
  if (bytes.find("\"weight_map\"") == bytes.npos && !name.ends_with(".index.json"))
    return "a text in JSON: name the file of the weights instead";
  std::error_code ignored;
  if (fs::exists(file.parent_path() / "manifest.json", ignored))
    return "the index of a checkpoint's files: name the checkpoint's folder instead";
  return fmt::format(
      "the index of weights in several files, of which Muster reads only one: in Python, "
      "safetensors.torch.save_file({{name: tensor for part in "
      "set(json.load(open(\"{}\"))[\"weight_map\"].values()) for name, tensor in "
      "safetensors.torch.load_file(part).items()}}, \"weights.safetensors\") makes one file of "
      "them",
      name);
}

// Returns what a file is that came instead of another, or that has another one in it; "" if it is
// nothing of this kind.
std::string text_of_stand_in(const fs::path& file, std::string_view bytes) {
  if (bytes.starts_with("version https://git-lfs.github.com/spec/"))
    return "a pointer of git LFS, which only stands for the file: `git lfs pull` in its repository "
           "fetches the file itself";
  if (bytes.starts_with("\x1f\x8b"))
    return "a file that gzip has compressed: name the file that `gunzip` makes of it";
  std::string_view text = without_byte_order_mark(bytes);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const std::string head = lower(std::string(text.substr(0, 16)));
  for (const std::string_view begin : {"<!doctype html", "<html", "<head", "<?xml"})
    if (head.starts_with(begin))
      return "a page of HTML or XML, as a website sends where a file is not found or needs a "
             "login: download the weights again, and look at what comes";
  return text.starts_with('{') ? text_of_json(file, text) : "";
}

}  // namespace

std::string other_format(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return "";
  const std::string bytes = beginning_of(file);
  if (std::string text = text_of_stand_in(file, bytes); !text.empty()) return text;
  const std::string extension = lower(file.extension().string());
  const std::string_view by_content = extension_by_content(bytes);
  // Several extensions are of one format: that of the name is kept if it agrees with the content.
  const auto find = [](std::string_view one) {
    return std::ranges::find(kFormats, one, &Format::extension);
  };
  const Format* const none = std::end(kFormats);
  const Format* const named = find(extension);
  const Format* const begun = by_content.empty() ? named : find(by_content);
  const bool agree = named != none && begun != none && named->tensors == begun->tensors;
  if (const Format* const format = agree ? named : begun; format != none)
    return text_of_format(*format, file, extension);
  if (bytes.starts_with("PK\x03\x04"))
    return "a zip archive: unpack it, and name the file of the weights that is in it";
  return "";
}

}  // namespace muster::checkpoint
