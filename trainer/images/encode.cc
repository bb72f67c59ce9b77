#include "trainer/images/encode.h"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <memory>

#include "common/error.h"

namespace muster::images {

std::string encode_jpeg(const ImageView& image, int quality, Chroma chroma) {
  const std::unique_ptr<void, int (*)(void*)> handle(tjInitCompress(), tjDestroy);
  if (handle == nullptr) throw Unavailable("no memory for libjpeg-turbo");
  const int subsampling = chroma == Chroma::full ? TJSAMP_444 : TJSAMP_420;
  const auto width = static_cast<int>(image.width), height = static_cast<int>(image.height);
  const unsigned long bound = tjBufSize(width, height, subsampling);
  if (image.width > 65500 || image.height > 65500 || bound == static_cast<unsigned long>(-1)) {
    throw Invalid(fmt::format("expected 1 to 65500 rows and columns for a JPEG, found {}x{}",
                              image.height, image.width));
  }
  std::string out(bound, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  unsigned long size = bound;
  if (tjCompress2(handle.get(), image.pixels, width, static_cast<int>(image.stride), height,
                  TJPF_RGB, &bytes, &size, subsampling, quality, TJFLAG_NOREALLOC) != 0) {
    throw Invalid(fmt::format("cannot make a JPEG of {}x{} pixels (height x width): {}",
                              image.height, image.width, tjGetErrorStr2(handle.get())));
  }
  out.resize(size);
  return out;
}

}  // namespace muster::images
