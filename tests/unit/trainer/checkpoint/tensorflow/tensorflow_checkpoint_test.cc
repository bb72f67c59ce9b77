#include "trainer/checkpoint/tensorflow/tensorflow_checkpoint.h"

#include <numeric>

#include "gmock/gmock.h"
#include "proto/muster/tensor_bundle.pb.h"
#include "tests/unit/trainer/checkpoint/checkpoint_testing.h"
#include "tests/unit/trainer/checkpoint/tensorflow/table_builder.h"

namespace muster::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path kFixtures = fs::path(MUSTER_SOURCE_DIR) / "tests/fixtures/checkpoints";

// As make_tensorflow_checkpoints.py writes them.
float element(const std::string& name, int64_t i) {
  const int64_t sum = std::accumulate(name.begin(), name.end(), int64_t{0});
  return static_cast<float>((sum + 31 * i) % 251 - 125) / 64;
}

std::vector<float> read(const TensorflowCheckpoint& checkpoint, const std::string& name,
                        size_t count) {
  std::vector<float> values(count);
  checkpoint.read(name, values);
  return values;
}

TEST(TensorflowCheckpoint, ReadsWhatTensorFlowHasSavedInTwoFiles) {
  const TensorflowCheckpoint checkpoint(kFixtures / "model.ckpt");
  const auto shapes = checkpoint.shapes();
  EXPECT_EQ(shapes.size(), 35u * 5 + 6 * 4 + 2 + 2 + 1);
  for (const std::string name :
       {"FeatureExtractor/MobilenetV1/Conv2d_1_depthwise/depthwise_weights",
        "BoxPredictor_0/BoxEncodingPredictor/biases"}) {
    int64_t count = 1;
    for (const int64_t axis : shapes.at(name)) count *= axis;
    const auto values = read(checkpoint, name, static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(values[static_cast<size_t>(i)], element(name, i)) << name << " " << i;
  }
  EXPECT_THAT(shapes.at("FeatureExtractor/MobilenetV1/Conv2d_1_depthwise/depthwise_weights"),
              ElementsAre(3, 3, 16, 1));
  EXPECT_THAT(shapes.at("global_step"), IsEmpty());
}

TEST(TensorflowCheckpoint, ReadsScalarsAndEmptyTensorsAndRefusesOtherTypes) {
  const TensorflowCheckpoint checkpoint(kFixtures / "kinds.ckpt");
  EXPECT_THAT(read(checkpoint, "scalar", 1), ElementsAre(0.5f));
  EXPECT_THAT(read(checkpoint, "empty", 0), IsEmpty());
  EXPECT_EQ(read(checkpoint, "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", 6)[1],
            element("kernel", 1));
  EXPECT_THAT(read(checkpoint, "half", 2), ElementsAre(1, 2));
  EXPECT_THAT(error_of<Invalid>([&] { read(checkpoint, "integer", 2); }),
              HasSubstr("variable integer: expected F32, F16, BF16 or F64, found type 3"));
}

TEST(TensorflowCheckpoint, IsFoundByItsPrefixItsIndexAndItsFolder) {
  const TestFolder folder;
  for (const char* end : {".index", ".data-00000-of-00002", ".data-00001-of-00002"})
    fs::copy(kFixtures / (std::string("model.ckpt") + end), folder.path());
  const fs::path prefix = folder.path() / "model.ckpt";
  EXPECT_EQ(TensorflowCheckpoint::prefix_of(prefix), prefix);
  EXPECT_EQ(TensorflowCheckpoint::prefix_of(prefix.string() + ".index"), prefix);
  EXPECT_EQ(TensorflowCheckpoint::prefix_of(folder.path()), prefix);
  EXPECT_FALSE(TensorflowCheckpoint::prefix_of(folder.path() / "other"));
  EXPECT_FALSE(TensorflowCheckpoint::prefix_of(prefix.string() + ".data-00000-of-00002"));
}

TEST(TensorflowCheckpoint, OfSeveralInAFolderIsTheNewestOrNone) {
  const TestFolder folder;
  for (const char* name : {"model.ckpt-9", "model.ckpt-10"})
    write_all(folder.path() / (std::string(name) + ".index"), "");
  const auto error = [&] {
    return error_of<Invalid>([&] { TensorflowCheckpoint::prefix_of(folder.path()); });
  };
  EXPECT_THAT(error(), HasSubstr("found 2: model.ckpt-10, model.ckpt-9; name one of them"));
  write_all(folder.path() / "checkpoint",
            "model_checkpoint_path: \"/old/place/model.ckpt-10\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-9\"\n");
  EXPECT_EQ(TensorflowCheckpoint::prefix_of(folder.path()), folder.path() / "model.ckpt-10");
  std::string deep;
  for (int i = 0; i < 300'000; ++i) deep += "a{";
  for (const std::string& other : {std::string("model_checkpoint_path: \"model.ckpt-8\""),
                                   std::string("{\"json\": 1}"), std::string(), deep}) {
    write_all(folder.path() / "checkpoint", other);
    EXPECT_THAT(error(), HasSubstr("found 2")) << other.substr(0, 100);
  }
}

TEST(TensorflowCheckpoint, TellsDamagedAndMissingData) {
  const TestFolder folder;
  const fs::path prefix = folder.path() / "model.ckpt";
  const std::string name = "BoxPredictor_0/BoxEncodingPredictor/biases";
  fs::copy(kFixtures / "model.ckpt.index", folder.path());
  const auto error = [&] {
    return error_of<Invalid>([&] { read(TensorflowCheckpoint(prefix), name, 12); });
  };
  EXPECT_THAT(error(), HasSubstr("model.ckpt.data-00000-of-00002: No such file"));
  const fs::path data = prefix.string() + ".data-00000-of-00002";
  fs::copy(kFixtures / data.filename(), folder.path());
  flip_bit(data, 1);
  EXPECT_THAT(error(), AllOf(HasSubstr("variable " + name + ": damaged: expected crc32c"),
                             HasSubstr("data-00000-of-00002")));
  fs::resize_file(data, 3);
  EXPECT_THAT(error(), HasSubstr("expected 48 bytes from byte 0 of"));
}

// An index with one variable, as the function changes its entry.
std::string index_of(const std::function<void(bundle::Header&, bundle::Entry&)>& change) {
  bundle::Header header;
  header.set_num_shards(1);
  bundle::Entry entry;
  entry.set_dtype(1);
  entry.mutable_shape()->add_dim()->set_size(2);
  entry.set_size(8);
  change(header, entry);
  return test::table_of({{"", header.SerializeAsString()}, {"v", entry.SerializeAsString()}});
}

TEST(TensorflowIndex, RefusesEntriesThatCannotBe) {
  const auto error = [](const std::function<void(bundle::Header&, bundle::Entry&)>& change) {
    return error_of<Invalid>([&] { TensorflowIndex::parse(index_of(change), "m.index"); });
  };
  EXPECT_EQ(error([](auto&, auto&) {}), "no error");
  EXPECT_THAT(error([](auto& header, auto&) { header.set_num_shards(0); }),
              HasSubstr("m.index: expected 1 to 100000 files of data, found 0"));
  EXPECT_THAT(error([](auto& header, auto&) { header.set_endianness(bundle::Header::BIG); }),
              HasSubstr("little-endian"));
  EXPECT_THAT(error([](auto&, auto& entry) { entry.set_shard_id(1); }),
              HasSubstr("variable v: expected a file of data from 0 to 0, found 1"));
  EXPECT_THAT(error([](auto&, auto& entry) { entry.set_shard_id(-1); }), HasSubstr("found -1"));
  EXPECT_THAT(error([](auto&, auto& entry) { entry.set_offset(-1); }),
              HasSubstr("found 8 bytes at -1"));
  EXPECT_THAT(error([](auto&, auto& entry) { entry.set_size(12); }),
              HasSubstr("F32 values of the shape [2], found 12"));
  EXPECT_THAT(error([](auto&, auto& entry) { entry.mutable_shape()->add_dim()->set_size(-2); }),
              HasSubstr("axes of 0 and more, found -2"));
  EXPECT_THAT(error([](auto&, auto& entry) {
                for (int i = 0; i < 3; ++i)
                  entry.mutable_shape()->add_dim()->set_size(int64_t{1} << 62);
              }),
              HasSubstr("expected the bytes of F32 values"));
  EXPECT_THAT(error([](auto&, auto& entry) {
                for (int i = 0; i < 300; ++i) entry.mutable_shape()->add_dim()->set_size(1);
              }),
              HasSubstr("at most 254 axes"));
  EXPECT_THAT(error_of<Invalid>([] {
                TensorflowIndex::parse(test::table_of({{"v", ""}}), "m.index");
              }),
              HasSubstr("a table without its header"));
}

}  // namespace
}  // namespace muster::checkpoint
