#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/error.h"
#include "gtest/gtest.h"
#include "tests/unit/common/temporary_folder.h"
#include "trainer/data/sources/source.h"
#include "trainer/spec/training_spec.h"

namespace muster::data {

inline std::string word(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

// `count` images of 2 x 3 whose pixels are 0, 1, 2, ... through the file.
inline std::string images_2x3(uint32_t count) {
  std::string bytes = word(0x0803) + word(count) + word(2) + word(3);
  for (uint32_t i = 0; i < count * 6; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

inline std::string labels_of(const std::vector<uint8_t>& labels) {
  return word(0x0801) + word(static_cast<uint32_t>(labels.size())) +
         std::string(labels.begin(), labels.end());
}

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline spec::DataSource idx(const std::filesystem::path& images,
                            const std::filesystem::path& labels) {
  spec::DataSource source;
  source.kind = spec::IdxSource{{{images, labels}}};
  return source;
}

// A sample as it is stored.
inline Row filled(const Dataset& dataset, uint64_t sample) {
  Sample workspace;
  Row row;
  dataset.fill({.sample = sample}, {}, workspace, row);
  return row;
}

// A sample's features as they are used at a position of an epoch's order.
inline std::vector<std::byte> used(const Dataset& dataset, const Augmentation& augmentation,
                                   uint64_t sample, uint64_t epoch, uint64_t position) {
  std::vector<std::byte> bytes(dataset.format().bytes());
  std::vector<float> target(static_cast<size_t>(dataset.label_count()));
  Sample workspace;
  Row row{.features_memory = bytes.data(), .target_memory = target.data()};
  dataset.fill({.sample = sample, .epoch = epoch, .position = position}, augmentation, workspace,
               row);
  return bytes;
}

// A folder of the running test alone, removed with it.
class TestFolder : public test::TemporaryFolder {
 public:
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path() / name, std::ios::binary) << bytes;
    return path() / name;
  }
};

// Returns the message with which a source is refused.
inline std::string error_of(const spec::DataSource& source) {
  try {
    open_dataset(source);
  } catch (const Invalid& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace muster::data
