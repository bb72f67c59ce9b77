#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace muster::loop {

struct TableOptions {
  std::filesystem::path file;  // CSV, Parquet or Arrow
  std::filesystem::path from;  // the folder that relative paths refer to
  std::string key;             // the column beside the predictions; empty: the number of the row
  std::filesystem::path to;    // a Parquet file for the predictions; empty: they are printed
};

// Whether `muster-trainer predict` takes a file for a table, by its name.
bool is_table(const std::filesystem::path& file);

// `muster-trainer predict` with a table: the rows become samples in the same way as those of the
// model's training, whose data are not needed. `where` is as for load_model(). Calls `print` with
// CSV, or writes the same columns to options.to: a line of names, and a line for each row with its
// key and
//   of a classification: the class, its probability, and the probability of each class
//   of numbers: the numbers, of which the transform of the target is undone; of several quantiles
//   those of each quantile, one after the other
// Throws Invalid for a model that does not take tables, and for the errors of a table.
void predict_table(const std::filesystem::path& where, const TableOptions& options,
                   const std::function<void(std::string_view)>& print);

}  // namespace muster::loop
