#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace muster::records {

// One TFRecord: u64 length, u32 masked crc32c of the length's bytes, the bytes, u32 masked crc32c
// of them; all little-endian. https://www.tensorflow.org/tutorials/load_data/tfrecord
constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;

std::string frame_record(std::string_view bytes);

// Returns the length in a record's header; nothing if the header's checksum is wrong.
std::optional<uint64_t> length_of(std::span<const char, kHeaderBytes> header);

// Whether the footer is the checksum of the record's bytes.
bool footer_fits(std::string_view bytes, std::span<const char, kFooterBytes> footer);

// Returns ((crc >> 15) | (crc << 17)) + 0xa282ead8. The mask prevents problems with checksums over
// data that contain checksums.
uint32_t mask_crc(uint32_t crc);

}  // namespace muster::records
