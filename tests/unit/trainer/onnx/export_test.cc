#include "trainer/onnx/export.h"

#include <gmock/gmock.h>
#include <sys/mman.h>

#include <algorithm>
#include <set>

#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/catalogue.h"

// What onnxruntime computes with these models is tested by tests/python/check_onnx.py.

namespace muster::onnx {
namespace {

using compute::ModelSpec;
using testing::ElementsAre;

data::SampleFormat bytes(std::vector<int64_t> shape) {
  return {std::move(shape), compute::ElementType::uint8, 1.0f / 255, 0, {"cat", "dog"}};
}

onnxformat::Model exported(const ModelSpec& model, const data::SampleFormat& samples) {
  const std::vector<float> parameters(compute::make_layout(model).size(), 0.5f);
  return to_onnx(model, parameters, samples);
}

std::vector<std::string> operations(const onnxformat::Model& model) {
  std::vector<std::string> names;
  for (const auto& node : model.graph().node()) names.push_back(node.op_type());
  return names;
}

std::vector<std::string> names_of(const auto& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name());
  return names;
}

compute::LayerSpec layer(const std::string& name, compute::LayerKind kind,
                         std::vector<std::string> inputs = {}) {
  return {name, std::move(kind), std::move(inputs), true};
}

compute::Conv2d convolution() {
  compute::Conv2d convolution;
  convolution.filters = 4;
  convolution.window.size = {3, 3};
  convolution.activation = compute::Activation::relu;
  return convolution;
}

compute::Dense dense(int64_t units) {
  compute::Dense dense;
  dense.units = units;
  return dense;
}

TEST(OnnxTest, HasNodesThatTakeWhatIsThereAndNamesThatAreThereOnce) {
  compute::ModelOptions options;
  options.depth_multiplier = 0.1f;
  ModelSpec model = *compute::find_model("ssd-mobilenet-v1", options);
  model.input_shape = {64, 64, 3};
  const onnxformat::Model onnx = exported(model, bytes({64, 64, 3}));
  std::set<std::string> known;
  const auto add = [&](const std::string& name) { EXPECT_TRUE(known.insert(name).second) << name; };
  for (const std::string& name : names_of(onnx.graph().input())) add(name);
  for (const std::string& name : names_of(onnx.graph().initializer())) add(name);
  for (const auto& node : onnx.graph().node()) {
    for (const std::string& input : node.input()) EXPECT_TRUE(known.contains(input)) << input;
    add(node.output(0));
  }
  EXPECT_THAT(names_of(onnx.graph().output()), ElementsAre("boxes", "scores"));
  EXPECT_EQ(onnx.ir_version(), 8);
  EXPECT_EQ(onnx.opset_import(0).version(), 17);
  EXPECT_EQ(onnx.metadata_props(0).value(), R"(["cat","dog"])");
}

TEST(OnnxTest, MakesTheScoresOfADetectorAsItsLossHasThem) {
  for (const bool softmax : {false, true}) {
    compute::ModelOptions options;
    options.depth_multiplier = 0.1f;
    if (softmax) options.classification = {detection::ClassificationLoss::Kind::softmax, 2};
    ModelSpec model = *compute::find_model("ssd-mobilenet-v1", options);
    model.input_shape = {64, 64, 3};
    const auto found = operations(exported(model, bytes({64, 64, 3})));
    EXPECT_EQ(std::ranges::count(found, "Softmax"), softmax ? 1 : 0);
    EXPECT_EQ(std::ranges::count(found, "Div"), softmax ? 1 : 0);
    EXPECT_EQ(std::ranges::count(found, "Sigmoid"), softmax ? 0 : 1);
  }
}

TEST(OnnxTest, TransposesImagesOnceAndBackOnlyWhereTheyEndAsRows) {
  const ModelSpec model{"custom",
                        {9, 9, 3},
                        2,
                        {layer("one", convolution()), layer("norm", compute::BatchNormalization{}),
                         layer("two", convolution()), layer("out", dense(2))},
                        compute::SoftmaxCrossEntropy{}};
  EXPECT_THAT(operations(exported(model, bytes({9, 9, 3}))),
              ElementsAre("Cast", "Mul", "Transpose", "Conv", "Relu", "BatchNormalization", "Conv",
                          "Relu", "Transpose", "Flatten", "Gemm", "Softmax", "Identity"));
}

TEST(OnnxTest, TakesFloatsAsTheyAreAndGivesNumbersThatAreNoProbabilities) {
  const ModelSpec model{"custom", {7}, 1, {layer("out", dense(1))}, compute::MeanSquaredError{}};
  const onnxformat::Model onnx = exported(model, {{7}, compute::ElementType::float32, 1, 0, {}});
  EXPECT_THAT(operations(onnx), ElementsAre("Gemm", "Identity"));
  const auto& input = onnx.graph().input(0).type().tensor_type();
  EXPECT_EQ(input.elem_type(), onnxformat::FLOAT);
  EXPECT_EQ(input.shape().dim(0).dim_param(), "batch");
  EXPECT_EQ(input.shape().dim(1).dim_value(), 7);
  EXPECT_THAT(names_of(onnx.graph().output()), ElementsAre("outputs"));
}

TEST(OnnxTest, GivesPredictionsThatAreAFunctionOfTheOutputs) {
  const auto made = [](compute::LossKind loss) {
    const ModelSpec model{"custom", {7}, 1, {layer("out", dense(1))}, std::move(loss)};
    return exported(model, {{7}, compute::ElementType::float32, 1, 0, {}});
  };
  const onnxformat::Model decides = made(compute::BinaryCrossEntropy{});
  EXPECT_THAT(operations(decides), ElementsAre("Gemm", "Sigmoid", "Identity"));
  EXPECT_THAT(names_of(decides.graph().output()), ElementsAre("probabilities"));
  const onnxformat::Model counts = made(compute::Poisson{});
  EXPECT_THAT(operations(counts), ElementsAre("Gemm", "Exp", "Identity"));
  EXPECT_THAT(names_of(counts.graph().output()), ElementsAre("outputs"));
}

TEST(OnnxTest, KeepsTheNamesOfOutputsFromLayersOfTheSameName) {
  const ModelSpec model{"custom",
                        {7},
                        2,
                        {layer("input2", dense(3)), layer("probabilities", dense(2))},
                        compute::SoftmaxCrossEntropy{}};
  const onnxformat::Model onnx = exported(model, {{7}, compute::ElementType::float32, 2, 1, {}});
  EXPECT_THAT(names_of(onnx.graph().output()), ElementsAre("probabilities"));
  EXPECT_EQ(onnx.graph().node().rbegin()->output(0), "probabilities");
  EXPECT_THAT(operations(onnx), ElementsAre("Mul", "Add", "Gemm", "Gemm", "Softmax", "Identity"));
}

// The parameters are an address range without memory.
TEST(OnnxTest, RemovesTheFileOfAnEarlierExportBesideAModelThatIsTooLarge) {
  const test::TemporaryFolder folder;
  const ModelSpec model{"custom", {7}, 1, {layer("out", dense(1))}, compute::MeanSquaredError{}};
  const data::SampleFormat samples{{7}, compute::ElementType::float32, 1, 0, {}};
  const std::vector<float> parameters(compute::make_layout(model).size());
  const auto path = export_onnx(folder.path(), model, parameters, samples);
  ASSERT_TRUE(std::filesystem::exists(path.value()));
  constexpr size_t kBytes = size_t{1} << 31;
  void* range =
      ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(range, MAP_FAILED);
  const std::span large(static_cast<const float*>(range), kBytes / sizeof(float));
  EXPECT_EQ(export_onnx(folder.path(), model, large, samples), std::nullopt);
  ::munmap(range, kBytes);
  EXPECT_FALSE(std::filesystem::exists(*path));
}

TEST(OnnxTest, ReplacesTheFileOfAnEarlierExport) {
  const test::TemporaryFolder folder;
  const ModelSpec model{"custom", {7}, 1, {layer("out", dense(1))}, compute::MeanSquaredError{}};
  const data::SampleFormat samples{{7}, compute::ElementType::float32, 1, 0, {}};
  for (const float value : {1.0f, 2.0f}) {
    const std::vector<float> parameters(compute::make_layout(model).size(), value);
    const auto path = export_onnx(folder.path(), model, parameters, samples);
    EXPECT_EQ(path, folder.path() / "model/model.onnx");
    onnxformat::Model read;
    EXPECT_TRUE(read.ParseFromString(read_file(*path)));
    EXPECT_EQ(read.SerializeAsString(), to_onnx(model, parameters, samples).SerializeAsString());
  }
}

}  // namespace
}  // namespace muster::onnx
