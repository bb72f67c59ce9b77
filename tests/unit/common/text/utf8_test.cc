#include "common/text/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/common/error_of.h"

namespace muster {
namespace {

using std::string_literals::operator""s;

TEST(Utf8, IsRefusedNowhereInGoodText) {
  for (const std::string& text :
       {""s, "a"s, "caf\xc3\xa9"s, "\xef\xbb\xbf a"s, "\xf0\x9f\x98\x80"s, "a\0b"s, "\0\0\0\0"s})
    EXPECT_FALSE(find_other_encoding(text)) << text;
}

TEST(Utf8, IsToldFromOtherEncodings) {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"\xff\xfe"
       "a\0,\0"s,
       "FILE: line 1: expected text in UTF-8, found UTF-16, as its first bytes FF FE say; save the "
       "file as UTF-8"},
      {"\xfe\xff\0a"s, "found UTF-16, as its first bytes FE FF say; save the file as UTF-8"},
      {"a\0b\0"s, "found UTF-16, as the zero in each of its first characters says; save"},
      {"\0a\0b"s, "found UTF-16, as the zero in each of its first characters says; save"},
      {"a\nb\ncaf\xe9,1\n",
       "FILE: line 3: expected text in UTF-8, found the byte 233 at offset 7, which may be Latin-1 "
       "or Windows-1252; save the file as UTF-8"},
      {"\xc0\x80", "the byte 192 at offset 0"},
      {"a\xed\xa0\x80", "the byte 237 at offset 1"},
  };
  for (const auto& item : cases)
    EXPECT_THAT(test::error_of([&] { require_utf8(item.text, "FILE"); }),
                testing::HasSubstr(item.message));
}

}  // namespace
}  // namespace muster
