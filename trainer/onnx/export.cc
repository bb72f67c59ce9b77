#include "trainer/onnx/export.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "common/program/log.h"
#include "common/system/file.h"
#include "trainer/compute/models/ssd.h"
#include "trainer/onnx/layers.h"
#include "trainer/onnx/table_columns.h"

namespace muster::onnx {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kIrVersion = 8;
constexpr int64_t kOperators = 17;
// Protobuf holds less than 2 GiB; the difference is room for everything except weights.
constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - (uint64_t{1} << 24);
constexpr const char* kOutputs[] = {"probabilities", "boxes", "scores", "outputs"};

fs::path path_in(const fs::path& job_directory) {
  return job_directory / "model/model.onnx";
}

class Exporter {
 public:
  Exporter(const compute::ModelSpec& model, std::span<const float> parameters,
           const data::SampleFormat& samples, onnxformat::Graph& to)
      : graph_(compute::build_graph(model)),
        samples_(samples),
        table_(parse_table(samples)),
        builder_(to),
        layers_(graph_, parameters, builder_) {}

  void run() {
    for (const char* name : kOutputs) builder_.reserve(name);
    layers_.add_layers(table_ ? add_columns(*table_, builder_) : add_input());
    const std::string rows = layers_.rows(graph_.output);
    if (const auto* detector = std::get_if<compute::SsdLoss>(&graph_.loss)) {
      add_objects(*detector, rows);
    } else {
      const bool probable = graph_.prediction == compute::OutputFunction::softmax ||
                            graph_.prediction == compute::OutputFunction::sigmoid;
      std::string outputs = predictions(rows);
      if (table_ && !table_->target_is_class)
        outputs = undo_scalings(table_->target_scalings, graph_.outputs(), outputs, builder_);
      builder_.output(probable ? "probabilities" : "outputs", outputs, {"batch", graph_.outputs()});
    }
  }

 private:
  static std::optional<data::Preparation> parse_table(const data::SampleFormat& samples) {
    if (samples.table.is_null()) return std::nullopt;
    return data::parse_preparation(samples.table, "samples: table");
  }

  std::string predictions(const std::string& rows) {
    switch (graph_.prediction) {
      case compute::OutputFunction::softmax:
        return builder_.add("Softmax", "softmax", {rows}, {{"axis", int64_t{1}}});
      case compute::OutputFunction::sigmoid:
        return builder_.add("Sigmoid", "sigmoid", {rows});
      case compute::OutputFunction::exponential:
        return builder_.add("Exp", "exp", {rows});
      default:
        return rows;
    }
  }

  // Returns the model's input: the samples' elements with their scale and offset.
  std::string add_input() {
    std::vector<Dimension> shape{"batch"};
    shape.insert(shape.end(), samples_.shape.begin(), samples_.shape.end());
    const bool bytes = samples_.type == compute::ElementType::uint8;
    std::string tensor =
        builder_.input("input", bytes ? onnxformat::UINT8 : onnxformat::FLOAT, shape);
    if (bytes)
      tensor = builder_.add("Cast", "input/floats", {tensor}, {{"to", int64_t{onnxformat::FLOAT}}});
    if (samples_.scale != 1.0f)
      tensor = builder_.add("Mul", "input/scaled", {tensor, number("scale", samples_.scale)});
    if (samples_.offset != 0.0f)
      tensor = builder_.add("Add", "input/shifted", {tensor, number("offset", samples_.offset)});
    const std::vector<int64_t>& wanted = graph_.values[0].shape;
    if (wanted == samples_.shape) return tensor;
    std::vector<int64_t> rows{-1};
    rows.insert(rows.end(), wanted.begin(), wanted.end());
    return builder_.add("Reshape", "input/sample",
                        {tensor, builder_.constant("input/shape", rows)});
  }

  std::string number(const std::string& name, float value) {
    return builder_.constant("input/" + name, {}, std::span(&value, 1));
  }

  // `rows` are codes of all anchors, and then their logits (SsdLoss).
  void add_objects(const compute::SsdLoss& loss, const std::string& rows) {
    const std::vector<float> anchors = compute::anchors_of(loss, graph_);
    const auto count = static_cast<int64_t>(anchors.size() / 4);
    const int64_t columns = loss.classes + 1;
    const std::string codes =
        reshape(slice(rows, "codes", 1, 0, 4 * count), "codes", {-1, count, 4});
    const std::string logits = reshape(slice(rows, "logits", 1, 4 * count, count * (4 + columns)),
                                       "logits", {-1, count, columns});
    builder_.output("boxes", decoded(loss.coder, anchors, codes), {"batch", count, int64_t{4}});
    const std::string scores = scored(loss.classification, logits);
    builder_.output("scores", slice(scores, "logits/classes", 2, 1, columns),
                    {"batch", count, loss.classes});
  }

  // Does what detection::ClassificationLoss::scores() does.
  std::string scored(const detection::ClassificationLoss& loss, const std::string& logits) {
    if (loss.kind == detection::ClassificationLoss::Kind::sigmoid)
      return builder_.add("Sigmoid", "logits/sigmoid", {logits});
    const std::string scale =
        builder_.constant("logits/scale", {}, std::span(&loss.logit_scale, 1));
    const std::string scaled = builder_.add("Div", "logits/scaled", {logits, scale});
    return builder_.add("Softmax", "logits/softmax", {scaled}, {{"axis", int64_t{2}}});
  }

  // Does what detection::BoxCoder::decode() does.
  std::string decoded(const detection::BoxCoder& coder, const std::vector<float>& anchors,
                      const std::string& codes) {
    std::vector<float> centres, factors, sizes;
    for (size_t i = 0; i < anchors.size() / 4; ++i) {
      const detection::Box anchor = detection::box_at(anchors, i);
      const float height = anchor.ymax - anchor.ymin, width = anchor.xmax - anchor.xmin;
      centres.insert(centres.end(), {anchor.ymin + height / 2, anchor.xmin + width / 2});
      factors.insert(factors.end(), {height / coder.y_scale, width / coder.x_scale});
      sizes.insert(sizes.end(), {height, width});
    }
    const auto of_anchors = [&](const char* name, const std::vector<float>& values) {
      return builder_.constant(name, {static_cast<int64_t>(values.size() / 2), 2}, values);
    };
    const std::vector<float> scales{1 / coder.height_scale, 1 / coder.width_scale}, half{0.5f};
    const auto add = [&](const char* operation, const char* name, const std::string& a,
                         const std::string& b) {
      return builder_.add(operation, std::string("codes/") + name, {a, b});
    };
    const std::string moved = add("Mul", "moved", slice(codes, "codes/centres", 2, 0, 2),
                                  of_anchors("anchors/factors", factors));
    const std::string centre = add("Add", "centre", moved, of_anchors("anchors/centres", centres));
    const std::string logarithm = add("Mul", "logarithm", slice(codes, "codes/sizes", 2, 2, 4),
                                      builder_.constant("anchors/scales", {2}, scales));
    const std::string size = add("Mul", "size", builder_.add("Exp", "codes/growth", {logarithm}),
                                 of_anchors("anchors/sizes", sizes));
    const std::string reach =
        add("Mul", "reach", size, builder_.constant("anchors/half", {1}, half));
    return builder_.add("Concat", "codes/boxes",
                        {add("Sub", "least", centre, reach), add("Add", "most", centre, reach)},
                        {{"axis", int64_t{2}}});
  }

  std::string slice(const std::string& tensor, const std::string& name, int64_t axis, int64_t begin,
                    int64_t end) {
    const auto constant = [&](const char* what, int64_t value) {
      return builder_.constant(name + "/" + what, std::vector<int64_t>{value});
    };
    return builder_.add(
        "Slice", name + "/slice",
        {tensor, constant("begin", begin), constant("end", end), constant("axis", axis)});
  }

  std::string reshape(const std::string& tensor, const std::string& name,
                      const std::vector<int64_t>& shape) {
    return builder_.add("Reshape", name, {tensor, builder_.constant(name + "/shape", shape)});
  }

  const compute::Graph graph_;
  const data::SampleFormat& samples_;
  const std::optional<data::Preparation> table_;
  GraphBuilder builder_;
  LayerExporter layers_;
};

}  // namespace

onnxformat::Model to_onnx(const compute::ModelSpec& model, std::span<const float> parameters,
                          const data::SampleFormat& samples) {
  onnxformat::Model onnx;
  onnx.set_ir_version(kIrVersion);
  onnx.set_producer_name("muster");
  onnx.add_opset_import()->set_version(kOperators);
  if (!samples.table.is_null()) {
    onnxformat::OperatorSet& more = *onnx.add_opset_import();
    more.set_domain(kTableDomain);
    more.set_version(kTableOperators);
  }
  onnx.mutable_graph()->set_name(model.name);
  Exporter(model, parameters, samples, *onnx.mutable_graph()).run();
  onnxformat::Property& classes = *onnx.add_metadata_props();
  classes.set_key("classes");
  classes.set_value(Json(samples.classes).dump());
  return onnx;
}

std::optional<fs::path> export_onnx(const fs::path& job_directory, const compute::ModelSpec& model,
                                    std::span<const float> parameters,
                                    const data::SampleFormat& samples) {
  if (parameters.size_bytes() > kMostBytes) {
    log::warning(
        "model.onnx is not written: a model of more than 2 GB does not fit into ONNX's "
        "format");
    remove_onnx(job_directory);
    return std::nullopt;
  }
  if (!samples.table.is_null())
    for (const auto& column : data::parse_preparation(samples.table, "samples: table").columns)
      if (!is_raw(column))
        log::warning(fmt::format(
            "model.onnx takes the {} inputs of the column {} as numbers, since ONNX has no "
            "operators that make them of its cells",
            column.inputs(), column.name));
  fs::path path = path_in(job_directory);
  muster::create_directories(path.parent_path());
  write_file_atomically(path, to_onnx(model, parameters, samples).SerializeAsString());
  return path;
}

void remove_onnx(const fs::path& job_directory) {
  const fs::path path = path_in(job_directory);
  std::error_code error;
  fs::remove(path, error);
  if (error) throw WriteError("cannot remove " + path.string(), error.value());
}

}  // namespace muster::onnx
