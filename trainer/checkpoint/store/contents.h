#pragma once

#include <filesystem>
#include <vector>

#include "common/documents/document.h"
#include "trainer/checkpoint/files/manifest.h"

namespace muster::checkpoint {

// The tensors in a checkpoint's files, by the headers of the files.
struct Contents {
  std::vector<Slice> slices;
  // Hugging Face's index of the model's files. It maps a tensor that is divided among files to the
  // file with its first rows; "slices" in the metadata lists all files.
  Json index;
};

// Reads the headers of all safetensors files of the manifest in `folder`. Throws Invalid, also if
// the size of a file differs from the manifest.
Contents read_contents(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace muster::checkpoint
