#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::records {

struct CsvField {
  std::string text;  // without the quotation marks around it, if there are any
  bool quoted = false;
  size_t line = 0;    // line of its beginning, from 1
  size_t column = 0;  // column in bytes, from 1
};

// A table by RFC 4180: rows of fields. A field in quotation marks may contain anything; a quotation
// mark in it is written twice. The separator is the last comma, semicolon or tab in the first row
// that is not in quotation marks. Spaces around quotation marks, blank rows and a byte-order mark
// are skipped.
class CsvReader {
 public:
  // `text` must live as long as the reader; `name` is the text's name in messages. Throws Invalid
  // for a text that is not UTF-8.
  CsvReader(std::string_view text, std::string name);

  // Reads the next row; returns false after the last one. Throws Invalid naming line and column if
  // a quotation mark is not closed, or if text follows a closing quotation mark.
  bool next(std::vector<CsvField>& row);
  char separator() const { return separator_; }

 private:
  CsvField read_field();
  void read_quoted(CsvField& field);
  void skip_spaces();
  bool at_end_of_field() const;
  size_t column() const { return at_ - line_begin_ + 1; }
  void end_line();

  std::string_view text_;
  std::string name_;
  size_t at_ = 0;
  size_t line_ = 1, line_begin_ = 0;
  char separator_ = ',';
};

}  // namespace muster::records
