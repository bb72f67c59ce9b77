#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::summary {

// Returns one TFRecord: u64 length, u32 masked crc32c of the length's bytes, the bytes, u32 masked
// crc32c of them; all little-endian. https://www.tensorflow.org/tutorials/load_data/tfrecord
std::string frame_record(std::string_view bytes);

// Returns ((crc >> 15) | (crc << 17)) + 0xa282ead8. The mask prevents problems with a checksum over
// data that holds checksums.
uint32_t mask_crc(uint32_t crc);

}  // namespace muster::summary
