#include "trainer/compute/check_batch.h"

#include <algorithm>
#include <string>

#include "common/error.h"
#include "trainer/compute/loss.h"

namespace muster::compute {

void check_batch(const Batch& batch, const Graph& graph, int64_t max_rows, bool with_targets) {
  const size_t rows = static_cast<size_t>(std::max<int64_t>(batch.rows, 0));
  if (batch.rows < 0 || batch.rows > max_rows || batch.features.size() < rows) {
    throw Invalid("batch: expected at most " + std::to_string(max_rows) +
                  " rows, each with its features; found " + std::to_string(batch.rows) +
                  " rows and " + std::to_string(batch.features.size()) + " features");
  }
  if (!with_targets) return;
  if (!batch.weights.empty() && batch.weights.size() < rows)
    throw Invalid("batch: expected a weight for each of " + std::to_string(rows) + " rows, found " +
                  std::to_string(batch.weights.size()));
  if (describe(graph.loss).labels != LabelKind::classes) {
    if (batch.targets.size() >= rows) return;
    throw Invalid("batch: expected a target for each of " + std::to_string(rows) + " rows, found " +
                  std::to_string(batch.targets.size()));
  }
  if (batch.labels.size() < rows) {
    throw Invalid("batch: expected a label for each of " + std::to_string(rows) + " rows, found " +
                  std::to_string(batch.labels.size()));
  }
  for (size_t row = 0; row < rows; ++row) {
    if (batch.labels[row] >= 0 && batch.labels[row] < graph.label_count) continue;
    throw Invalid("batch: row " + std::to_string(row) + ": expected a label in [0, " +
                  std::to_string(graph.label_count) + "), found " +
                  std::to_string(batch.labels[row]));
  }
}

void check_room(const Batch& batch, int64_t output_count, std::span<const float> outputs) {
  const int64_t needed = batch.rows * output_count;
  if (outputs.size() >= static_cast<size_t>(needed)) return;
  throw Invalid("outputs: expected room for " + std::to_string(needed) + ", found " +
                std::to_string(outputs.size()));
}

void check_slots(const Optimizer& optimizer, std::span<Memory* const> slots,
                 const ParameterLayout& layout, bool (*usable)(Memory&)) {
  bool fits = slots.size() == optimizer.slot_names().size() && slots.size() <= kMostSlots;
  for (Memory* slot : slots) fits &= slot->size() == layout.size() && usable(*slot);
  if (fits) return;
  throw Invalid("train: expected " + std::to_string(optimizer.slot_names().size()) + " slots of " +
                std::to_string(layout.size()) + " floats, found " + std::to_string(slots.size()) +
                " slots, another size or memory of another device");
}

}  // namespace muster::compute
