#include "trainer/onnx/table_columns.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace muster::onnx {

namespace {

using data::PreparedColumn;

Attribute to_float() {
  return {"to", int64_t{onnxformat::FLOAT}};
}

// The nodes of one column, whose names begin with the column's.
class Column {
 public:
  Column(const PreparedColumn& column, GraphBuilder& builder)
      : column_(column), builder_(builder) {}

  // Returns the model's inputs of the column.
  std::string add() {
    const auto width = static_cast<int64_t>(column_.inputs());
    if (!is_raw(column_)) return builder_.input(column_.name, onnxformat::FLOAT, {"batch", width});
    return column_.is_category() ? add_category(width) : add_numbers();
  }

 private:
  std::string node(const char* operation, const char* name, const std::vector<std::string>& inputs,
                   const std::vector<Attribute>& attributes = {}, const char* domain = "") {
    return builder_.add(operation, column_.name + "/" + name, inputs, attributes, domain);
  }
  std::string number(const char* name, double value) {
    return builder_.constant(column_.name + "/" + name, {}, std::span<const double>(&value, 1));
  }

  // The place of the value among the inputs, and 1 at this place.
  std::string add_category(int64_t width) {
    std::vector<std::string> values = column_.values;
    if (values.empty()) values.emplace_back();  // for there must be one
    std::vector<int64_t> places(values.size()), all(static_cast<size_t>(width));
    std::iota(places.begin(), places.end(), 0);
    std::iota(all.begin(), all.end(), 0);
    const std::string text = builder_.input(column_.name, onnxformat::STRING, {"batch", 1});
    const std::string place =
        node("LabelEncoder", "place", {text},
             {{"keys_strings", values}, {"values_int64s", places}, {"default_int64", width - 1}},
             kTableDomain);
    const std::string is_there =
        node("Equal", "is_there", {place, builder_.constant(column_.name + "/places", all)});
    return node("Cast", "inputs", {is_there}, {to_float()});
  }

  std::string add_numbers() {
    const auto length = static_cast<int64_t>(column_.length);
    const std::string raw = builder_.input(column_.name, onnxformat::DOUBLE, {"batch", length});
    const std::string is_missing = node("IsNaN", "is_missing", {raw});
    std::string x = node("Where", "filled", {is_missing, number("missing", column_.missing), raw});
    if (column_.least) x = node("Max", "at_least", {x, number("least", *column_.least)});
    if (column_.most) x = node("Min", "at_most", {x, number("most", *column_.most)});
    x = column_.bounds.empty() ? scaled(x) : in_buckets(x);
    if (!column_.flags_missing) return x;
    const std::string flag = node("Cast", "flag", {is_missing}, {to_float()});
    return node("Concat", "inputs", {x, flag}, {{"axis", int64_t{1}}});
  }

  std::string scaled(std::string x) {
    const data::Scaling& scaling = column_.scaling;
    if (scaling.is_log) {
      const std::string sum = node("Add", "and_one", {node("Abs", "size", {x}), number("one", 1)});
      x = node("Mul", "logarithm", {node("Sign", "sign", {x}), node("Log", "log", {sum})});
    }
    if (scaling.offset != 0) x = node("Sub", "shifted", {x, number("offset", scaling.offset)});
    if (scaling.factor != 1) x = node("Mul", "scaled", {x, number("factor", scaling.factor)});
    return node("Cast", "number", {x}, {to_float()});
  }

  // The input of a bucket is 1 where the number reaches the bound before the bucket (the first one
  // has none) and not the bound after it.
  std::string in_buckets(const std::string& x) {
    const auto bounds = static_cast<int64_t>(column_.bounds.size());
    const auto length = static_cast<int64_t>(column_.length);
    const std::string each = node(
        "Reshape", "each", {x, builder_.constant(column_.name + "/each/shape", {-1, length, 1})});
    const std::string limits =
        builder_.constant(column_.name + "/bounds", {bounds}, std::span(column_.bounds));
    const std::string reached = node(
        "Cast", "reached", {node("GreaterOrEqual", "is_reached", {each, limits})}, {to_float()});
    const std::string sides = builder_.constant(column_.name + "/sides", {0, 0, 1, 0, 0, 0});
    const std::string other_sides = builder_.constant(column_.name + "/sides", {0, 0, 0, 0, 0, 1});
    const float one = 1, zero = 0;
    const std::string before =
        node("Pad", "before",
             {reached, sides, builder_.constant(column_.name + "/one", {}, std::span(&one, 1))});
    const std::string after = node(
        "Pad", "after",
        {reached, other_sides, builder_.constant(column_.name + "/zero", {}, std::span(&zero, 1))});
    return node("Reshape", "buckets",
                {node("Sub", "is_there", {before, after}),
                 builder_.constant(column_.name + "/shape", {-1, length * (bounds + 1)})});
  }

  const PreparedColumn& column_;
  GraphBuilder& builder_;
};

}  // namespace

bool is_raw(const PreparedColumn& column) {
  return column.kind != data::FeatureKind::categories && column.hash_buckets == 0;
}

std::string add_columns(const data::Preparation& preparation, GraphBuilder& builder) {
  std::vector<std::string> inputs;
  for (const PreparedColumn& column : preparation.columns)
    inputs.push_back(Column(column, builder).add());
  return builder.add("Concat", "input", inputs, {{"axis", int64_t{1}}});
}

std::string undo_scalings(const std::vector<data::Scaling>& scalings, int64_t outputs,
                          const std::string& rows, GraphBuilder& builder) {
  if (std::ranges::all_of(scalings,
                          [](const data::Scaling& each) { return each == data::Scaling(); }))
    return rows;
  std::vector<double> offsets, factors;
  for (size_t i = 0; i < static_cast<size_t>(outputs); ++i) {
    const data::Scaling& scaling = scalings[i % scalings.size()];
    offsets.push_back(scaling.offset);
    factors.push_back(1 / scaling.factor);
  }
  const auto node = [&](const char* operation, const char* name,
                        const std::vector<std::string>& inputs,
                        const std::vector<Attribute>& attributes = {}) {
    return builder.add(operation, std::string("target/") + name, inputs, attributes);
  };
  const auto constant = [&](const char* name, const std::vector<double>& values) {
    return builder.constant(std::string("target/") + name, {std::ssize(values)}, std::span(values));
  };
  std::string x = node("Cast", "scaled", {rows}, {{"to", int64_t{onnxformat::DOUBLE}}});
  x = node(
      "Add", "shifted",
      {node("Mul", "stretched", {x, constant("factors", factors)}), constant("offsets", offsets)});
  if (scalings.front().is_log) {
    const std::string power = node("Exp", "power", {node("Abs", "size", {x})});
    x = node("Mul", "undone",
             {node("Sign", "sign", {x}), node("Sub", "less_one", {power, constant("one", {1})})});
  }
  return node("Cast", "number", {x}, {to_float()});
}

}  // namespace muster::onnx
