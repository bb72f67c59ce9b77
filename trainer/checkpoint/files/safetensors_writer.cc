#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "common/digest.h"
#include "common/documents/document.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/checkpoint/files/durable_file.h"
#include "trainer/checkpoint/files/safetensors.h"
#include "trainer/checkpoint/files/slices.h"

namespace muster::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are written as they lie in memory");

// Number of floats; few enough to be still in the cache when they are written.
constexpr size_t kPart = 16 << 10;

// Has no branch for each float, so that the compiler can process several floats at a time.
bool all_finite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (const float value : values)
    found |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & kExponent) == kExponent);
  return found == 0;
}

[[noreturn]] void fail_diverged(const std::filesystem::path& path, const TensorPiece& piece) {
  const auto bad = std::find_if(piece.values.begin(), piece.values.end(),
                                [](float value) { return !std::isfinite(value); });
  throw Invalid(
      fmt::format("{}: element {} of {} (from row {}) is {}; expected finite numbers",
                  path.string(), bad - piece.values.begin(), piece.name, piece.first_row, *bad),
      kDiverged);
}

void write_piece(DurableFile& file, const std::filesystem::path& path, const TensorPiece& piece) {
  for (size_t at = 0; at < piece.values.size(); at += kPart) {
    const auto part = piece.values.subspan(at, std::min(kPart, piece.values.size() - at));
    if (!all_finite(part)) fail_diverged(path, piece);
    file.write(std::as_bytes(part));
  }
}

std::string header_of(std::span<const TensorPiece> pieces,
                      const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  Json& strings = header["__metadata__"] = Json::object();
  for (const auto& [key, value] : metadata) strings[key] = value;
  uint64_t offset = 0;
  Json tensors = Json::object();
  for (const TensorPiece& piece : pieces) {
    if (tensors.contains(piece.name)) {
      throw Invalid(fmt::format("tensor {} is given twice for one file", piece.name));
    }
    const std::vector<int64_t> shape =
        piece.whole() ? piece.shape : slice_shape(piece.shape, piece.rows);
    const uint64_t end = offset + piece.values.size_bytes();
    tensors[piece.name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {offset, end}}};
    offset = end;
    if (!piece.whole()) {
      strings["slice:" + piece.name] =
          Json{{"shape", piece.shape}, {"first_row", piece.first_row}}.dump();
    }
  }
  header.update(tensors);
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

bool TensorPiece::whole() const {
  return first_row == 0 && (shape.empty() || rows == rows_of(shape));
}

FileEntry write_safetensors(const std::filesystem::path& path, std::span<const TensorPiece> pieces,
                            const std::map<std::string, std::string>& metadata, SpeedLimit* limit) {
  const std::string header = header_of(pieces, metadata);
  const std::array<uint64_t, 1> length{header.size()};
  DurableFile file(path, limit);
  file.write(std::as_bytes(std::span(length)));
  file.write(std::as_bytes(std::span(header)));
  for (const TensorPiece& piece : pieces) write_piece(file, path, piece);
  file.finish();
  return {path.filename().string(), file.bytes(), file.crc32c()};
}

}  // namespace muster::checkpoint
