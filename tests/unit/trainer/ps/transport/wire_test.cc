#include "trainer/ps/transport/wire.h"

#include <gmock/gmock.h>

#include <random>

namespace muster::ps {
namespace {

using testing::ElementsAre;

grpc::ByteBuffer buffer_of(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const auto& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

grpc::Slice slice_of(const std::vector<float>& values) {
  return grpc::Slice(values.data(), values.size() * sizeof(float));
}

TEST(WireTest, APushComesBackAsItWentIn) {
  PushHeader header;
  header.generation = 3;
  header.rank = 2;
  header.step = 77;
  header.sequence = 5;
  header.ticket = 9;
  header.contributors.set(0).set(9).set(kMostContributors - 1);
  header.sums.rows = 32;
  header.sums.loss = 1.5;
  header.sums.weight = 31.5;
  header.sums.terms = {30, 0, 0, 0, 7};
  grpc::ByteBuffer buffer = encode(to_message(header), slice_of({1, 2, 3}));
  const auto decoded = decode_push(buffer, WireType::float32);
  ASSERT_TRUE(decoded);
  const PushHeader back = from_message(decoded->header);
  EXPECT_EQ(back.generation, 3u);
  EXPECT_EQ(back.rank, 2u);
  EXPECT_EQ(back.step, 77u);
  EXPECT_EQ(back.ticket, 9u);
  EXPECT_EQ(back.contributors, header.contributors);
  EXPECT_EQ(back.sums, header.sums);
  ASSERT_EQ(decoded->count, 3u);
  std::vector<float> values(3);
  copy_floats(buffer, decoded->at_byte, values, WireType::float32);
  EXPECT_THAT(values, ElementsAre(1, 2, 3));
}

TEST(WireTest, TheBytesAreOrdinaryProtobuf) {
  Push message;
  message.set_step(4);
  const std::vector<float> values = {1, 2};
  const std::string bytes = bytes_of(encode(message, slice_of(values)));
  Push parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.step(), 4u);
  EXPECT_EQ(parsed.gradients().size(), 8u);
  grpc::ByteBuffer other = buffer_of(parsed.SerializeAsString());
  EXPECT_EQ(decode_push(other, WireType::float32)->count, 2u);
}

// Returns the bytes in pieces of `length`, as a connection may deliver them.
grpc::ByteBuffer in_pieces(const std::string& bytes, size_t length) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += length)
    slices.emplace_back(bytes.substr(at, length));
  return {slices.data(), slices.size()};
}

TEST(WireTest, Bfloat16ComesBackRoundedHoweverTheBytesAreCut) {
  const std::vector<float> values = {1, -2.5f, 1.00390625f, 3.14159265f, 0};
  const std::string bytes = bytes_of(encode(to_message(PushHeader{}), to_bfloat16(values)));
  EXPECT_LT(bytes.size(), 5 * sizeof(float));
  for (size_t length = 1; length <= bytes.size(); ++length) {
    grpc::ByteBuffer buffer = in_pieces(bytes, length);
    const auto decoded = decode_push(buffer, WireType::bfloat16);
    ASSERT_TRUE(decoded) << length;
    std::vector<float> read(decoded->count);
    copy_floats(buffer, decoded->at_byte, read, WireType::bfloat16);
    EXPECT_THAT(read, ElementsAre(1, -2.5f, 1.0f, 3.140625f, 0)) << length;
  }
}

TEST(WireTest, RefusesWhatIsNoPush) {
  Push negative;
  negative.set_rows(-1);
  Push torn;
  torn.set_gradients("abc");
  Push crowded;
  crowded.set_contributors(std::string(kMostContributors / 8 + 1, '\xff'));
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), negative.SerializeAsString(), torn.SerializeAsString(),
        crowded.SerializeAsString(), bytes_of(encode(Push(), slice_of({1, 2}))) + "more",
        bytes_of(encode(Push(), slice_of({1, 2}))).substr(0, 6)}) {
    grpc::ByteBuffer buffer = buffer_of(bytes);
    EXPECT_FALSE(decode_push(buffer, WireType::float32));
  }
}

TEST(WireTest, NoBytesCrashIt) {
  std::mt19937 random(1);
  const std::string good = bytes_of(encode(to_message(PushHeader{}), slice_of({1, 2, 3, 4})));
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    bytes.resize(random() % (good.size() + 8));
    for (int j = 0; j < 3 && !bytes.empty(); ++j)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    grpc::ByteBuffer buffer = buffer_of(bytes);
    const auto decoded = decode_push(buffer, WireType::float32);
    if (!decoded) continue;
    std::vector<float> values(decoded->count);
    copy_floats(buffer, decoded->at_byte, values, WireType::float32);
    grpc::ByteBuffer reply = buffer_of(bytes);
    decode_reply(reply, WireType::bfloat16);
  }
}

}  // namespace
}  // namespace muster::ps
