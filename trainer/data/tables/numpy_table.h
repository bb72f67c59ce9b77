#pragma once

#include <memory>
#include <string>

#include "trainer/tables/table.h"

namespace muster::data {

// Parses the content of NumPy's .npy (an array) or .npz (a zip file of arrays). An array has one
// axis, which is a column, or two, rows and columns. The columns of .npy are column1, column2 and
// so on; those of .npz have the array's name, with a number behind it for two axes: X1, X2. All
// arrays must have as many rows. Throws Invalid, beginning with `name`, for damaged files and for
// arrays of anything but numbers and booleans.
std::unique_ptr<const tables::Table> parse_numpy(std::string content, const std::string& name);

}  // namespace muster::data
