#include "trainer/checkpoint/start/take_weights.h"

#include <limits>
#include <numeric>

#include "gmock/gmock.h"
#include "tests/unit/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/catalogue.h"

namespace muster::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// A checkpoint of two servers, which cuts hidden/kernel, and the export of the same weights.
class TakeWeights : public testing::Test {
 protected:
  void SetUp() override {
    Store store(folder_.path() / "checkpoints", 1);
    checkpoint_ = publish(store, test_manifest(1, 1), layout_, values_, 2);
    file_ = export_model(folder_.path(), layout_, values_, Json::object());
  }
  std::string error(const fs::path& from, const compute::ParameterLayout& layout,
                    const spec::InitializeOptions& options = {}) {
    std::vector<float> values(layout.size());
    return error_of<Invalid>(
        [&] { take_weights("initializeFrom", from, layout, values, options); });
  }

  TestFolder folder_;
  compute::ParameterLayout layout_ = test_layout();
  std::vector<float> values_ = test_values(layout_);
  fs::path checkpoint_;
  fs::path file_;
};

TEST_F(TakeWeights, FromAFolderOrAnExport) {
  for (const fs::path& from : {checkpoint_, file_}) {
    std::vector<float> values(layout_.size(), 0.0f);
    EXPECT_TRUE(take_weights("initializeFrom", from, layout_, values).is_complete());
    EXPECT_EQ(values, values_);
  }
}

TEST_F(TakeWeights, LeavesTensorsOfOtherNamesAndTellsThem) {
  const auto layout = layout_of({{"hidden/kernel", {7, 70}}, {"head/kernel", {70, 3}}});
  for (const fs::path& from : {checkpoint_, file_}) {
    std::vector<float> values(layout.size(), -5.0f);
    const TakenWeights weights = take_weights("initializeFrom", from, layout, values);
    EXPECT_THAT(weights.missing, ElementsAre("head/kernel"));
    EXPECT_THAT(weights.taken, ElementsAre("hidden/kernel"));
    EXPECT_THAT(weights.unused, SizeIs(layout_.tensors().size() - 1));
    EXPECT_EQ(values[layout.find("head/kernel").offset], -5.0f);
    EXPECT_EQ(values[layout.find("hidden/kernel").offset + 489],
              values_[layout_.find("hidden/kernel").offset + 489]);
  }
}

TEST_F(TakeWeights, RefusesOtherShapesAndNamesAllOfThem) {
  const auto layout =
      layout_of({{"hidden/kernel", {7, 71}}, {"hidden/bias", {71}}, {"norm/mean", {5}}});
  for (const fs::path& from : {checkpoint_, file_}) {
    EXPECT_THAT(error(from, layout),
                AllOf(StartsWith("initializeFrom: " + from.string() + ": expected"),
                      HasSubstr("hidden/kernel of [7, 70] instead of [7, 71]"),
                      HasSubstr("hidden/bias of [70] instead of [71]")));
  }
}

TEST_F(TakeWeights, RefusesWhatHasNoneOfTheModelsTensors) {
  EXPECT_THAT(error(file_, layout_of({{"other/kernel", {2, 2}}})),
              HasSubstr("expected a tensor of the model, such as other/kernel, found only "
                        "frozen/kernel, hidden/bias, "));
}

TEST_F(TakeWeights, RefusesValuesThatAreNotFinite) {
  const auto layout = layout_of({{"a", {2, 2}}});
  std::string bytes;
  const std::string header = R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";
  const uint64_t length = header.size();
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += header;
  const float values[] = {1, 2, std::numeric_limits<float>::infinity(), 4};
  bytes.append(reinterpret_cast<const char*>(values), sizeof values);
  write_all(folder_.path() / "a.safetensors", bytes);
  EXPECT_THAT(
      error(folder_.path() / "a.safetensors", layout),
      HasSubstr("a.safetensors: tensor a: expected finite numbers, found inf as element 2"));
}

// A safetensors file: header and data.
void write_file(const fs::path& path, const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  write_all(path,
            std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data);
}

TEST_F(TakeWeights, ConvertsNumbersAndJudgesNothingThatNobodyWants) {
  const fs::path file = folder_.path() / "others.safetensors";
  write_file(file, R"({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
                       "b": {"dtype": "F16", "shape": [1], "data_offsets": [4, 6]},
                       "c": {"dtype": "F64", "shape": [1], "data_offsets": [6, 14]},
                       "step": {"dtype": "I64", "shape": [], "data_offsets": [14, 22]},
                       "tiny": {"dtype": "F4", "shape": [3], "data_offsets": [22, 24]}})",
             std::string("\x80\x3f\x20\xc0\x00\x3c", 6) +
                 std::string("\x00\x00\x00\x00\x00\x00\x04\x40", 8) + std::string(10, '\xff'));
  const auto layout = layout_of({{"a", {2}}, {"b", {1}}, {"c", {1}}});
  std::vector<float> values(layout.size());
  const TakenWeights weights = take_weights("f", file, layout, values);
  EXPECT_TRUE(weights.is_complete());
  EXPECT_THAT(weights.unused, ElementsAre("step", "tiny"));
  const auto at = [&](const char* name) { return values.data() + layout.find(name).offset; };
  EXPECT_EQ(at("a")[0], 1);
  EXPECT_EQ(at("a")[1], -2.5f);
  EXPECT_EQ(*at("b"), 1);
  EXPECT_EQ(*at("c"), 2.5f);
  EXPECT_THAT(error(file, layout_of({{"a", {2}}, {"step", {}}})),
              HasSubstr("others.safetensors: tensor step: expected dtype F32, F16, BF16 or F64, "
                        "found I64"));
}

// Two for one place, neither of which is taken.
TEST_F(TakeWeights, JudgesNoNamesThatNobodyWants) {
  const auto layout = layout_of({{"hidden/kernel", {7, 70}}, {"temperature", {}}});
  std::vector<float> values(layout.size());
  spec::InitializeOptions options;
  options.rename = {{"bias$", "kernel"}};
  options.exclude = {"^hidden/"};
  const TakenWeights weights = take_weights("f", file_, layout, values, options);
  EXPECT_THAT(weights.taken, ElementsAre("temperature"));
  EXPECT_THAT(weights.left_out, ElementsAre("hidden/kernel"));
}

TEST_F(TakeWeights, NamesFormatsOfOthersAndTheWayThereIs) {
  for (const auto& [name, what, way] :
       {std::tuple{"model.h5", "weights of Keras", "load_model(\"model.h5\")"},
        {"model.keras", "a model of Keras", "safetensors.numpy.save_file({w.path: "},
        {"model.ONNX", "a model in the format ONNX", "onnx.load(\"model.ONNX\")"},
        {"model.pt", "weights of PyTorch", "safetensors.torch.save_file(torch.load("},
        {"model.pth", "weights of PyTorch", "\"model.safetensors\""},
        {"pytorch_model.bin", "weights of PyTorch", "torch.load(\"pytorch_model.bin\""},
        {"model.npz", "arrays of NumPy", "numpy.load("}}) {
    const fs::path file = folder_.path() / name;
    EXPECT_THAT(error(file, layout_), HasSubstr("No such file"));
    write_all(file, "PK\x03\x04 or something else");
    EXPECT_THAT(error(file, layout_),
                AllOf(HasSubstr(file.string()), HasSubstr(what),
                      HasSubstr("which Muster does not read"), HasSubstr(way)));
  }
  // The content of a file decides, not its name.
  fs::copy_file(file_, folder_.path() / "weights.bin");
  std::vector<float> values(layout_.size());
  EXPECT_TRUE(take_weights("f", folder_.path() / "weights.bin", layout_, values).is_complete());
}

// A zip archive whose first entry has this name.
std::string zip_of(const std::string& entry) {
  std::string bytes = "PK\x03\x04" + std::string(26, '\0') + entry;
  bytes[26] = static_cast<char>(entry.size());
  return bytes;
}

TEST_F(TakeWeights, KnowsOtherFilesByTheirFirstBytes) {
  const std::string pickle = "\x80\x02}q", gzip = "\x1f\x8b\x08 and more";
  const fs::path folder = folder_.path() / "others";
  fs::create_directory(folder);
  for (const auto& [name, bytes, what, way] :
       {std::tuple{"model.safetensors",
                   std::string("version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
                   "a pointer of git LFS", "`git lfs pull`"},
        {"pytorch_model.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
         "a pointer of git LFS", "`git lfs pull`"},
        {"model.safetensors", "\n<!DOCTYPE html><html>Sign in</html>", "a page of HTML",
         "download the weights again"},
        {"model.safetensors", "<?xml version=\"1.0\"?><Error/>", "a page of HTML or XML", "again"},
        {"model.safetensors", "\x89HDF\r\n\x1a\n and more", "what begins as weights of Keras",
         "give it the name model.h5; then, in Python, safetensors.numpy.save_file({w.path: "},
        {"model.hdf5", "\x89HDF\r\n\x1a\n and more", "what is named as weights of Keras",
         "load_model(\"model.hdf5\")"},
        {"model.safetensors", zip_of("archive/data.pkl"), "what begins as weights of PyTorch",
         "give it the name model.pt; then, in Python, safetensors.torch.save_file("},
        {"model.safetensors", pickle, "what begins as weights of PyTorch", "\"model.pt\""},
        {"model.safetensors", zip_of("metadata.json"), "what begins as a model of Keras",
         "\"model.keras\""},
        {"model.bin", zip_of("arr_0.npy"), "what begins as arrays of NumPy", "\"model.npz\""},
        {"model.safetensors", zip_of("weights/a.txt"), "a zip archive", "unpack it"},
        {"model.safetensors", gzip, "a file that gzip has compressed", "`gunzip`"},
        {"model.safetensors.index.json",
         "{\"metadata\": {}, \"weight_map\": {\"a\": \"model-00001-of-00002.safetensors\"}}",
         "the index of weights in several files", "open(\"model.safetensors.index.json\")"},
        {"model.safetensors", "{\"layers\": 3}", "a text in JSON", "name the file of the weights"},
        {"model.ckpt.index", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
         "a pointer of git LFS", "`git lfs pull`"}}) {
    write_all(folder / name, bytes);
    EXPECT_THAT(error(folder / name, layout_),
                AllOf(HasSubstr((folder / name).string()), HasSubstr(what), HasSubstr(way)))
        << what;
  }
  fs::remove(folder / "model.ckpt.index");
  EXPECT_THAT(error(folder, layout_), AllOf(HasSubstr("others/model.safetensors: expected"),
                                            HasSubstr("found a text in JSON")));
  fs::remove(folder / "model.safetensors");
  EXPECT_THAT(error(folder, layout_),
              AllOf(HasSubstr("found the index of weights in several files"),
                    HasSubstr("open(\"model.safetensors.index.json\")")));
  EXPECT_THAT(error(checkpoint_ / "model.safetensors.index.json", layout_),
              HasSubstr("the index of a checkpoint's files: name the checkpoint's folder instead"));
}

TEST_F(TakeWeights, SaysWhatAPlaceIsNot) {
  EXPECT_THAT(error(folder_.path() / "none", layout_),
              AllOf(StartsWith("initializeFrom: "), HasSubstr("none: No such file")));
  EXPECT_THAT(error(folder_.path(), layout_),
              HasSubstr("found a job's directory; name its model/model.safetensors"));
  EXPECT_THAT(error(checkpoint_ / "model-00001-of-00002.safetensors", layout_),
              HasSubstr("is in none of its files"));
  flip_bit(checkpoint_ / "model-00000-of-00002.safetensors", 1400);
  EXPECT_THAT(error(checkpoint_, layout_),
              HasSubstr("model-00000-of-00002.safetensors: damaged: expected crc32c"));
}

TEST_F(TakeWeights, RenamesOneStepAfterTheOther) {
  const auto layout = layout_of({{"other/weights", {7, 70}}});
  std::vector<float> values(layout.size());
  spec::InitializeOptions options;
  options.rename = {{"^hid(den)/", "\\1/"}, {"^den/kernel$", "other/weights"}};
  const TakenWeights weights = take_weights("f", file_, layout, values, options);
  EXPECT_THAT(weights.taken, ElementsAre("other/weights"));
  EXPECT_EQ(values[489], values_[layout_.find("hidden/kernel").offset + 489]);
}

TEST_F(TakeWeights, RefusesTwoTensorsForOnePlace) {
  spec::InitializeOptions options;
  options.rename = {{"bias$", "kernel"}};
  EXPECT_THAT(error(file_, layout_of({{"hidden/kernel", {7, 70}}}), options),
              HasSubstr("expected one tensor for hidden/kernel, found hidden/bias and "
                        "hidden/kernel"));
}

TEST_F(TakeWeights, SkipsTensorsOfOtherShapesIfAsked) {
  const auto layout = layout_of({{"hidden/kernel", {7, 71}}, {"hidden/bias", {70}}});
  std::vector<float> values(layout.size(), -5.0f);
  spec::InitializeOptions options;
  options.skip_mismatched = true;
  const TakenWeights weights = take_weights("f", file_, layout, values, options);
  EXPECT_THAT(weights.mismatched, ElementsAre("hidden/kernel of [7, 70] instead of [7, 71]"));
  EXPECT_THAT(weights.taken, ElementsAre("hidden/bias"));
  EXPECT_EQ(values[layout.find("hidden/kernel").offset], -5.0f);
}

TEST_F(TakeWeights, RefusesToTakeNothing) {
  const auto layout = layout_of({{"hidden/kernel", {7, 71}}, {"hidden/bias", {71}}});
  spec::InitializeOptions options;
  options.skip_mismatched = true;
  EXPECT_THAT(error(file_, layout, options),
              AllOf(HasSubstr("expected at least one tensor to be taken, found that 0 of the "
                              "model's 2 tensors begin with those of " +
                              file_.string()),
                    HasSubstr("hidden/kernel of [7, 70] instead of [7, 71]")));
  options.exclude = {"^hidden/"};
  EXPECT_THAT(error(file_, layout, options),
              HasSubstr("2 begin with their initializers, as include and exclude say: "));
}

TEST_F(TakeWeights, TakesShapesThatDifferInAxesOfOne) {
  const auto layout = layout_of({{"hidden/kernel", {1, 7, 1, 70}}});
  std::vector<float> values(layout.size());
  EXPECT_TRUE(take_weights("f", file_, layout, values).is_complete());
  EXPECT_EQ(values[489], values_[layout_.find("hidden/kernel").offset + 489]);
}

TEST_F(TakeWeights, IncludesAndExcludesByTheModelsNames) {
  std::vector<float> values(layout_.size(), -5.0f);
  spec::InitializeOptions options;
  options.include = {"^hidden/"};
  options.exclude = {"bias$"};
  const TakenWeights weights = take_weights("f", file_, layout_, values, options);
  EXPECT_THAT(weights.taken, ElementsAre("hidden/kernel"));
  EXPECT_THAT(weights.left_out, SizeIs(layout_.tensors().size() - 1));
  EXPECT_EQ(values[layout_.find("hidden/bias").offset], -5.0f);
}

TEST(TakenWeights, SaysWhatItIsWithSomeOfTheNames) {
  TakenWeights weights;
  weights.taken = {"a", "b"};
  EXPECT_EQ(weights.text("F", 2), "2 of the model's 2 tensors begin with those of F");
  weights.missing = {"c", "d", "e"};
  weights.mismatched = {"f of [2] instead of [3]"};
  weights.left_out = {"g"};
  weights.unused = {"x"};
  EXPECT_EQ(
      weights.text("F", 2),
      "2 of the model's 7 tensors begin with those of F; 3 begin with their initializers, for "
      "it does not have them: c, d and 1 more; 1 begin with their initializers, for it has "
      "them in other shapes: f of [2] instead of [3]; 1 begin with their initializers, as "
      "include and exclude say: g; 1 of its tensors are not used: x");
}

const fs::path kDetector = fs::path(MUSTER_SOURCE_DIR) / "tests/fixtures/checkpoints/model.ckpt";

compute::ParameterLayout detector_layout(int64_t classes) {
  compute::ModelOptions options;
  options.depth_multiplier = 0.0625f;
  options.classes = classes;
  compute::ModelSpec model = *compute::find_model("ssd-mobilenet-v1", options);
  model.input_shape = {96, 96, 3};
  return compute::make_layout(model);
}

// As make_tensorflow_checkpoints.py writes them.
float first_element(const std::string& name) {
  return static_cast<float>(std::accumulate(name.begin(), name.end(), 0) % 251 - 125) / 64;
}

TEST(PublishedDetector, IsTakenWithoutARename) {
  const auto layout = detector_layout(1);
  std::vector<float> values(layout.size());
  const auto names = compute::published_names("ssd-mobilenet-v1");
  const TakenWeights weights = take_weights("f", kDetector, layout, values, {}, names);
  EXPECT_TRUE(weights.is_complete()) << weights.text("it", 100);
  EXPECT_THAT(weights.taken, SizeIs(35 * 5 + 6 * 4));
  EXPECT_THAT(
      weights.unused,
      ElementsAre("BoxPredictor_0/ClassPredictor/biases/ExponentialMovingAverage",
                  "FeatureExtractor/MobilenetV1/Conv2d_0/weights/ExponentialMovingAverage",
                  "FeatureExtractor/MobilenetV1/Conv2d_0/weights/RMSProp",
                  "FeatureExtractor/MobilenetV1/Conv2d_0/weights/RMSProp_1", "global_step"));
  const std::string features = "FeatureExtractor/MobilenetV1/";
  const std::pair<std::string, std::string> same[] = {
      {"Conv2d_0/kernel", features + "Conv2d_0/weights"},
      {"Conv2d_5_depthwise/kernel", features + "Conv2d_5_depthwise/depthwise_weights"},
      {"Conv2d_5_depthwise_normalization/moving_variance",
       features + "Conv2d_5_depthwise/BatchNorm/moving_variance"},
      {"Conv2d_13_pointwise_2_Conv2d_2_3x3_s2_512/kernel",
       features + "Conv2d_13_pointwise_2_Conv2d_2_3x3_s2_32/weights"},
      {"BoxPredictor_5_boxes/bias", "BoxPredictor_5/BoxEncodingPredictor/biases"},
      {"BoxPredictor_5_classes/kernel", "BoxPredictor_5/ClassPredictor/weights"}};
  for (const auto& [ours, theirs] : same)
    EXPECT_EQ(values[layout.find(ours).offset], first_element(theirs)) << ours;
}

TEST(PublishedDetector, GivesItsMovingAveragesIfAsked) {
  const auto layout = detector_layout(1);
  std::vector<float> values(layout.size());
  spec::InitializeOptions options;
  options.moving_averages = true;
  const auto weights = take_weights("f", kDetector, layout, values, options,
                                    compute::published_names("ssd-mobilenet-v1"));
  EXPECT_TRUE(weights.is_complete());
  const std::string name = "FeatureExtractor/MobilenetV1/Conv2d_0/weights";
  EXPECT_EQ(values[layout.find("Conv2d_0/kernel").offset],
            first_element(name + "/ExponentialMovingAverage"));
  EXPECT_EQ(values[layout.find("BoxPredictor_1_boxes/bias").offset],
            first_element("BoxPredictor_1/BoxEncodingPredictor/biases"));
}

TEST(PublishedDetector, LeavesOutTheHeadsOfOtherClassesIfAsked) {
  const auto layout = detector_layout(5);
  std::vector<float> values(layout.size());
  spec::InitializeOptions options;
  const auto names = compute::published_names("ssd-mobilenet-v1");
  EXPECT_THAT(
      error_of<Invalid>([&] { take_weights("f", kDetector, layout, values, options, names); }),
      HasSubstr("BoxPredictor_0_classes/bias of [6] instead of [18]"));
  options.skip_mismatched = true;
  const auto weights = take_weights("f", kDetector, layout, values, options, names);
  EXPECT_THAT(weights.mismatched, SizeIs(12));
  EXPECT_THAT(weights.taken, SizeIs(35 * 5 + 6 * 2));
}

TEST(PublishedNames, AreThoseOfTheClassifierToo) {
  const Renames names(compute::published_names("mobilenet-v1"));
  EXPECT_EQ(names.apply("MobilenetV1/Conv2d_3_pointwise/BatchNorm/beta"),
            "Conv2d_3_pointwise_normalization/beta");
  EXPECT_EQ(names.apply("MobilenetV1/Logits/Conv2d_1c_1x1/weights"), "logits/kernel");
  EXPECT_THAT(compute::published_names("mnist-mlp"), IsEmpty());
}

}  // namespace
}  // namespace muster::checkpoint
