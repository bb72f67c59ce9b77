#include "trainer/ps/transport/seal.h"

#include <gmock/gmock.h>
#include <grpcpp/support/slice.h>

#include <string>
#include <vector>

namespace muster::ps {
namespace {

std::string text_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

// In slices of `most` bytes.
grpc::ByteBuffer buffer_of(const std::string& text, size_t most) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < text.size(); at += most) slices.emplace_back(text.substr(at, most));
  return {slices.data(), slices.size()};
}

TEST(SealTest, AMessageComesBackAsItWentIn) {
  const std::string text = "nine rows, and their gradients";
  for (const size_t most : {1, 3, 5, 100}) {
    const std::string wire = text_of(sealed(buffer_of(text, most)));
    EXPECT_EQ(wire.size(), text.size() + 4);
    for (const size_t received : {1, 3, 4, 100}) {
      grpc::ByteBuffer buffer = buffer_of(wire, received);
      ASSERT_TRUE(unseal(buffer));
      EXPECT_EQ(text_of(buffer), text);
    }
  }
}

TEST(SealTest, EachBitThatFlipsIsSeen) {
  const std::string wire = text_of(sealed(buffer_of("nine rows, and their gradients", 7)));
  for (size_t bit = 0; bit < wire.size() * 8; ++bit) {
    std::string damaged = wire;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    grpc::ByteBuffer buffer = buffer_of(damaged, 16);
    EXPECT_FALSE(unseal(buffer)) << bit;
    EXPECT_EQ(text_of(buffer), damaged) << bit;
  }
}

TEST(SealTest, AMessageWithoutACrcIsNone) {
  for (const std::string& text : {std::string(), std::string("abc"), std::string("abcdefgh")}) {
    grpc::ByteBuffer buffer = buffer_of(text, 100);
    EXPECT_FALSE(unseal(buffer)) << text;
  }
}

}  // namespace
}  // namespace muster::ps
