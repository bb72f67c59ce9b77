#include "trainer/checkpoint/files/safetensors.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <limits>

#include "common/digest.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "common/system/input_file.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/checkpoint/checkpoint_testing.h"

namespace muster::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns a file with this JSON (padded) and `data` bytes after it.
std::string file_of(std::string json, size_t data) {
  json.resize((json.size() + 7) / 8 * 8, ' ');
  const uint64_t length = json.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + json +
         std::string(data, '\1');
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const TestFolder folder;
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {7};
  const std::vector<TensorPiece> pieces = {
      {.name = "a", .shape = {2, 3}, .first_row = 0, .rows = 2, .values = a},
      {.name = "scalar", .shape = {}, .first_row = 0, .rows = 1, .values = b}};
  const FileEntry entry =
      write_safetensors(folder.path() / "f.safetensors", pieces, {{"format", "test"}});
  const std::string bytes = read_all(folder.path() / "f.safetensors");
  EXPECT_EQ(entry.name, "f.safetensors");
  EXPECT_EQ(entry.bytes, bytes.size());
  EXPECT_EQ(entry.crc32c, crc32c(std::as_bytes(std::span(bytes))));
  EXPECT_EQ((bytes.size() - 7 * sizeof(float)) % 8, 0u);

  const SafetensorsFile file(folder.path() / "f.safetensors");
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_THAT(file.tensors()[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(file.tensors()[0].values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(file.tensors()[1].shape, IsEmpty());
  EXPECT_THAT(file.tensors()[1].values, ElementsAre(7));
  EXPECT_EQ(file.metadata().at("format"), "test");
}

TEST(Safetensors, RecordsShapeAndRowOfASlice) {
  const TestFolder folder;
  const std::vector<float> rows = {1, 2, 3, 4};
  const std::vector<TensorPiece> pieces = {
      {.name = "a", .shape = {5, 2}, .first_row = 3, .rows = 2, .values = rows}};
  write_safetensors(folder.path() / "f", pieces, {});
  const SafetensorsFile file(folder.path() / "f");
  EXPECT_THAT(file.tensors().at(0).shape, ElementsAre(2, 2));
  EXPECT_EQ(file.metadata().at("slice:a"), R"({"shape":[5,2],"first_row":3})");
}

TEST(Safetensors, WritesAFileWithoutTensors) {
  const TestFolder folder;
  write_safetensors(folder.path() / "f", {}, {});
  EXPECT_THAT(SafetensorsFile(folder.path() / "f").tensors(), IsEmpty());
}

// The file is longer than one write to the disk, and its length is no multiple of a device's block.
TEST(Safetensors, ReadsBackAFileOfSeveralBlocks) {
  const TestFolder folder;
  std::vector<float> values(777'777);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::vector<TensorPiece> pieces = {
      {.name = "a", .shape = {777'777}, .first_row = 0, .rows = 777'777, .values = values}};
  const FileEntry entry = write_safetensors(folder.path() / "f", pieces, {});
  EXPECT_EQ(entry.bytes, fs::file_size(folder.path() / "f"));
  EXPECT_EQ(entry.crc32c, InputFile(folder.path() / "f").crc32c());
  const SafetensorsFile file(folder.path() / "f");
  EXPECT_TRUE(std::ranges::equal(file.tensors().at(0).values, values));
}

TEST(Safetensors, WritesNoFasterThanItMay) {
  const TestFolder folder;
  const std::vector<float> values(500'000);
  const std::vector<TensorPiece> pieces = {
      {.name = "a", .shape = {500'000}, .first_row = 0, .rows = 500'000, .values = values}};
  const auto begun = std::chrono::steady_clock::now();
  SpeedLimit limit(/*bytes_per_second=*/20e6);
  write_safetensors(folder.path() / "f", pieces, {}, &limit);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(99));
}

TEST(Safetensors, RefusesToWriteANumberThatIsNotFinite) {
  const TestFolder folder;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -HUGE_VALF}) {
    const std::vector<float> values = {1, bad};
    const std::vector<TensorPiece> pieces = {
        {.name = "a", .shape = {2}, .first_row = 0, .rows = 2, .values = values}};
    try {
      write_safetensors(folder.path() / "f", pieces, {});
      ADD_FAILURE() << "no error";
    } catch (const Invalid& error) {
      EXPECT_EQ(error.exit_code(), kDiverged);
      EXPECT_THAT(error.what(), HasSubstr("element 1 of a"));
    }
    EXPECT_FALSE(fs::exists(folder.path() / "f"));
  }
}

TEST(Safetensors, NeverWritesOverAFile) {
  const TestFolder folder;
  write_all(folder.path() / "f", "precious");
  EXPECT_THAT(error_of<WriteError>([&] { write_safetensors(folder.path() / "f", {}, {}); }),
              HasSubstr((folder.path() / "f").string()));
  EXPECT_EQ(read_all(folder.path() / "f"), "precious");
}

// A limit of the file's size stands for a full disk.
TEST(Safetensors, LeavesNoPartOfAFileOnAFullDisk) {
  const TestFolder folder;
  const std::vector<float> values(100'000, 1.0f);
  const std::vector<TensorPiece> pieces = {
      {.name = "a", .shape = {100'000}, .first_row = 0, .rows = 100'000, .values = values}};
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{65536, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message =
      error_of<WriteError>([&] { write_safetensors(folder.path() / "f", pieces, {}); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(message, HasSubstr("cannot write"));
  EXPECT_FALSE(fs::exists(folder.path() / "f"));
}

struct BadFile {
  const char* name;
  std::string bytes;
  std::string message;
};

class SafetensorsRefuses : public testing::TestWithParam<BadFile> {};

TEST_P(SafetensorsRefuses, NamingFileAndPlace) {
  const TestFolder folder;
  const fs::path path = folder.path() / "bad.safetensors";
  write_all(path, GetParam().bytes);
  const std::string message = error_of<Invalid>([&] { SafetensorsFile file(path); });
  EXPECT_THAT(message, HasSubstr(path.string()));
  EXPECT_THAT(message, HasSubstr(GetParam().message));
}

std::string one(const std::string& tensor, size_t data = 8) {
  return file_of("{\"a\":" + tensor + "}", data);
}

INSTANTIATE_TEST_SUITE_P(
    Table, SafetensorsRefuses,
    testing::Values(
        BadFile{"Nothing", "", "expected 8 bytes of header length, found 0"},
        BadFile{"HeaderBeyondFile", std::string("\x10\0\0\0\0\0\0\0{}", 10),
                "header length at byte 0 is 16; expected at most 2"},
        BadFile{"AbsurdHeader", std::string(8, '\xff') + "{}", "expected at most 2"},
        BadFile{"NoObject", file_of("[]", 0), "'{' at byte 8"},
        BadFile{"EmptyHeader", file_of("", 0), "'{' at byte 8"},
        BadFile{"NoJson", file_of("{\"a\":", 0), "no JSON at byte"},
        BadFile{"NumberBeyondDouble", file_of("{\"a\":2E700}", 0), "no JSON"},
        BadFile{"DeepJson", file_of("{\"a\":[[[[[[[[1]]]]]]]]}", 0), "nested deeper"},
        BadFile{"KeyTwice", file_of("{\"a\":1,\"a\":2}", 0), "\"a\" stands twice"},
        BadFile{"FieldTwice", one(R"({"dtype":"F32","dtype":"F32"})"), "\"dtype\" stands twice"},
        BadFile{"NoTensor", one("1"), "tensor a: expected {"},
        BadFile{"ExtraField", one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"),
                "tensor a: expected {"},
        BadFile{"OtherType", one(R"({"dtype":"I64","shape":[1],"data_offsets":[0,8]})"),
                "tensor a: expected dtype F32, F16, BF16 or F64, found I64"},
        BadFile{"NoType", one(R"({"dtype":32,"shape":[2],"data_offsets":[0,8]})"),
                "expected dtype as a string, found 32"},
        BadFile{"WrongShapeOfHalves", one(R"({"dtype":"BF16","shape":[2],"data_offsets":[0,8]})"),
                "shape [2] of BF16 does not take the 8 bytes"},
        BadFile{"NegativeShape", one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
                "integers from 0"},
        BadFile{"HugeNumber",
                one(R"({"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]})"),
                "integers from 0"},
        BadFile{"OverflowingShape",
                one(R"({"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]})"),
                "does not take the 8 bytes"},
        BadFile{"WrongShape", one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
                "shape [3] of F32 does not take the 8 bytes"},
        BadFile{"BeyondData", one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"),
                "do not lie in the 8 bytes"},
        BadFile{"BackwardOffsets", one(R"({"dtype":"F32","shape":[0],"data_offsets":[8,4]})"),
                "do not lie"},
        BadFile{"Hole", one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), "a hole"},
        BadFile{"Rest", one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
                "4 bytes from byte"},
        BadFile{"Overlap",
                file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                        R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                        8),
                "tensors overlap"},
        BadFile{"MetadataNotStrings", file_of(R"({"__metadata__":{"a":1}})", 0),
                "__metadata__: a: expected a string"},
        BadFile{"MetadataNoObject", file_of(R"({"__metadata__":[]})", 0), "expected an object"}),
    [](const auto& info) { return info.param.name; });

TEST(Safetensors, RefusesTruncationAtEveryByte) {
  const TestFolder folder;
  const std::vector<float> values = {1, 2, 3};
  const std::vector<TensorPiece> pieces = {
      {.name = "a", .shape = {3}, .first_row = 0, .rows = 3, .values = values}};
  write_safetensors(folder.path() / "f", pieces, {});
  const std::string bytes = read_all(folder.path() / "f");
  for (size_t n = 0; n < bytes.size(); ++n) {
    write_all(folder.path() / "cut", bytes.substr(0, n));
    EXPECT_THROW(SafetensorsFile(folder.path() / "cut"), Invalid) << n;
  }
}

TEST(Safetensors, NamesAFileThatIsMissingOrNoFile) {
  const TestFolder folder;
  EXPECT_THAT(error_of<Invalid>([&] { SafetensorsFile file(folder.path() / "none"); }),
              HasSubstr("none: No such file"));
  EXPECT_THAT(error_of<Invalid>([&] { SafetensorsFile file(folder.path()); }),
              HasSubstr("expected a regular file"));
}

}  // namespace
}  // namespace muster::checkpoint
