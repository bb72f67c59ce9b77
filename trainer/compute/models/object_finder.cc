#include "trainer/compute/models/object_finder.h"

#include "trainer/compute/models/ssd.h"

namespace muster::compute {

ObjectFinder::ObjectFinder(const SsdLoss& loss, const Graph& graph)
    : anchors_(anchors_of(loss, graph)),
      coder_(loss.coder),
      classification_(loss.classification),
      columns_(static_cast<size_t>(loss.classes) + 1),
      suppressor_(loss.suppression, anchors_.size() / 4, columns_),
      boxes_(anchors_.size()),
      scores_(anchors_.size() / 4 * columns_) {}

std::span<const detection::Detection> ObjectFinder::find(std::span<const float> outputs) {
  coder_.decode(outputs.first(boxes_.size()), anchors_, boxes_);
  classification_.scores(outputs.subspan(boxes_.size(), scores_.size()), columns_, scores_);
  const auto found = suppressor_.select(boxes_, scores_);
  found_.assign(found.begin(), found.end());
  for (detection::Detection& one : found_) --one.label;
  return found_;
}

}  // namespace muster::compute
