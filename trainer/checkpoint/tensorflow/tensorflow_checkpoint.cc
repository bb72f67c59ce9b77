#include "trainer/checkpoint/tensorflow/tensorflow_checkpoint.h"

#include <fmt/format.h>

#include <set>

#include "common/digest.h"
#include "common/error.h"
#include "proto/muster/tensor_bundle.pb.h"
#include "trainer/checkpoint/files/number_type.h"
#include "trainer/checkpoint/tensorflow/sorted_table.h"
#include "trainer/records/framing.h"
#include "trainer/records/text_message.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr int kMostShards = 100'000;
constexpr int kMostAxes = 254;  // TensorFlow's limit
constexpr const char* kIndexSuffix = ".index";
constexpr uint64_t kMostStateBytes = 1 << 20;

bundle::Header parse_header(const TableEntries& entries, const std::string& file) {
  bundle::Header header;
  if (entries.empty() || !entries.front().first.empty() ||
      !header.ParseFromString(entries.front().second))
    throw Invalid(file +
                  ": expected the index of a TensorFlow checkpoint, found a table without "
                  "its header");
  if (header.endianness() != bundle::Header::LITTLE)
    throw Invalid(file + ": expected a checkpoint of a little-endian machine, found another");
  if (header.num_shards() < 1 || header.num_shards() > kMostShards)
    throw Invalid(fmt::format("{}: expected 1 to {} files of data, found {}", file, kMostShards,
                              header.num_shards()));
  return header;
}

// Returns the bytes of numbers of this shape; nothing if they do not fit into 63 bits.
std::optional<uint64_t> bytes_of(const NumberType& type, const std::vector<int64_t>& shape) {
  uint64_t bytes = type.bytes;
  for (const int64_t axis : shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(axis), &bytes)) return std::nullopt;
  return bytes <= static_cast<uint64_t>(INT64_MAX) ? std::optional(bytes) : std::nullopt;
}

TensorflowIndex::Variable parse_variable(const std::string& name, const std::string& value,
                                         int shards, const std::string& file) {
  const auto fail = [&](const std::string& expected, const std::string& found) -> Invalid {
    return Invalid(
        fmt::format("{}: variable {}: expected {}, found {}", file, name, expected, found));
  };
  bundle::Entry entry;
  if (!entry.ParseFromString(value)) throw fail("an entry of a checkpoint", "something else");
  TensorflowIndex::Variable variable;
  variable.type = entry.dtype();
  if (entry.shape().dim_size() > kMostAxes)
    throw fail(fmt::format("at most {} axes", kMostAxes), std::to_string(entry.shape().dim_size()));
  for (const auto& axis : entry.shape().dim()) {
    if (axis.size() < 0) throw fail("axes of 0 and more", std::to_string(axis.size()));
    variable.shape.push_back(axis.size());
  }
  if (entry.shard_id() < 0 || entry.shard_id() >= shards)
    throw fail(fmt::format("a file of data from 0 to {}", shards - 1),
               std::to_string(entry.shard_id()));
  if (entry.offset() < 0 || entry.size() < 0)
    throw fail("a place in a file", fmt::format("{} bytes at {}", entry.size(), entry.offset()));
  variable.shard = entry.shard_id();
  variable.offset = static_cast<uint64_t>(entry.offset());
  variable.bytes = static_cast<uint64_t>(entry.size());
  variable.crc = entry.crc32c();
  variable.is_whole = entry.slices_size() == 0;
  const NumberType* type = find_number_type(variable.type);
  if (type != nullptr && variable.is_whole && bytes_of(*type, variable.shape) != variable.bytes)
    throw fail(fmt::format("the bytes of {} values of the shape [{}]", type->name,
                           fmt::join(variable.shape, ", ")),
               std::to_string(variable.bytes));
  return variable;
}

}  // namespace

TensorflowIndex TensorflowIndex::parse(std::string_view bytes, const std::string& file) {
  const TableEntries entries = read_table(bytes, file);
  const bundle::Header header = parse_header(entries, file);
  TensorflowIndex index;
  index.shards = header.num_shards();
  for (const auto& [name, value] : entries)
    if (!name.empty())
      index.variables.emplace(name, parse_variable(name, value, index.shards, file));
  return index;
}

namespace {

// Returns the name of the newest prefix, which the file `checkpoint` of TensorFlow's Saver names;
// "" if there is no such file or it has another content.
std::string newest_name(const fs::path& folder) {
  std::error_code ignored;
  const fs::path file = folder / "checkpoint";
  if (!fs::is_regular_file(file, ignored)) return "";
  bundle::State state;
  const std::string error = records::parse_text(InputFile(file).text(kMostStateBytes), state);
  if (!error.empty()) return "";
  return fs::path(state.model_checkpoint_path()).filename().string();
}

std::optional<fs::path> prefix_in(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "manifest.json", ignored)) return std::nullopt;
  std::set<std::string> names;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored))
    if (at->path().extension() == kIndexSuffix) names.insert(at->path().stem().string());
  if (names.empty()) return std::nullopt;
  if (names.size() == 1) return folder / *names.begin();
  const std::string newest = newest_name(folder);
  if (names.contains(newest)) return folder / newest;
  throw Invalid(fmt::format(
      "{}: expected one TensorFlow checkpoint, or a file `checkpoint` that names the newest, found "
      "{}: {}; name one of them",
      folder.string(), names.size(), fmt::join(names, ", ")));
}

}  // namespace

std::optional<fs::path> TensorflowCheckpoint::prefix_of(const fs::path& from) {
  std::error_code ignored;
  if (fs::is_directory(from, ignored)) return prefix_in(from);
  if (from.extension() == kIndexSuffix) return fs::path(from).replace_extension();
  const bool is_prefix =
      !fs::exists(from, ignored) && fs::exists(from.string() + kIndexSuffix, ignored);
  return is_prefix ? std::optional(from) : std::nullopt;
}

TensorflowCheckpoint::TensorflowCheckpoint(fs::path prefix)
    : prefix_(std::move(prefix)), index_([this] {
        const fs::path index = prefix_.string() + kIndexSuffix;
        return TensorflowIndex::parse(InputFile(index).text(kMostTableBytes), index.string());
      }()) {}

std::map<std::string, std::vector<int64_t>> TensorflowCheckpoint::shapes() const {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, variable] : index_.variables) shapes.emplace(name, variable.shape);
  return shapes;
}

const InputFile& TensorflowCheckpoint::shard(int number) const {
  std::unique_ptr<InputFile>& file = files_[number];
  if (!file)
    file = std::make_unique<InputFile>(
        fmt::format("{}.data-{:05}-of-{:05}", prefix_.string(), number, index_.shards));
  return *file;
}

void TensorflowCheckpoint::read(const std::string& name, std::span<float> values) const {
  const TensorflowIndex::Variable& variable = index_.variables.at(name);
  const std::string where = fmt::format("{}: variable {}", prefix_.string(), name);
  const NumberType* type = find_number_type(variable.type);
  if (type == nullptr)
    throw Invalid(fmt::format("{}: expected {}, found type {} of TensorFlow", where, kNumberTypes,
                              variable.type));
  if (!variable.is_whole)
    throw Invalid(where + ": expected a variable that is saved as a whole, found one in parts");
  const InputFile& file = shard(variable.shard);
  if (variable.offset > file.size() || variable.bytes > file.size() - variable.offset)
    throw Invalid(fmt::format("{}: expected {} bytes from byte {} of {}, found only {}", where,
                              variable.bytes, variable.offset, file.path().string(), file.size()));
  std::vector<std::byte> bytes(values.size() * type->bytes);
  file.read_at(variable.offset, bytes);
  const uint32_t crc = records::mask_crc(crc32c(bytes));
  if (crc != variable.crc)
    throw Invalid(fmt::format("{}: damaged: expected crc32c {:08x}, found {:08x} in {}", where,
                              variable.crc, crc, file.path().string()));
  type->read(bytes, values);
}

}  // namespace muster::checkpoint
