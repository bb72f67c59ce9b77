#pragma once

#include <string>
#include <vector>

#include "trainer/data/tables/preparation.h"
#include "trainer/onnx/graph_builder.h"

namespace muster::onnx {

// The domain and the version of the operators that columns need besides ONNX's own.
constexpr const char* kTableDomain = "ai.onnx.ml";
constexpr int64_t kTableOperators = 3;

// Adds an input of the graph for each column of a table, [batch, 1], and what makes the model's
// inputs of them, as data::RowWriter does. Returns the model's inputs, [batch, inputs], as floats.
//   numbers     double; NaN is a missing cell. A vector has all its numbers: [batch, length].
//   categories  text; an empty text is a missing cell
// A column that is_raw() is not: its input is made by the caller, [batch, inputs of the column].
std::string add_columns(const data::Preparation& preparation, GraphBuilder& builder);
bool is_raw(const data::PreparedColumn& column);

// Adds what makes numbers in the unit of the data of the model's outputs, [batch, outputs].
std::string undo_scalings(const std::vector<data::Scaling>& scalings, int64_t outputs,
                          const std::string& rows, GraphBuilder& builder);

}  // namespace muster::onnx
