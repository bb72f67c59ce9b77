#include "trainer/folder/fresh_view.h"

#include "common/file.h"

namespace muster::folder {

namespace {

constexpr std::chrono::seconds kEvery{10};

}  // namespace

void FreshView::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kEvery;
  for (const std::filesystem::path& folder : folders_) look_anew(folder);
}

}  // namespace muster::folder
