#include "trainer/records/csv.h"

#include <fmt/format.h>

#include "common/error.h"
#include "common/text/byte_order_mark.h"
#include "common/text/utf8.h"

namespace muster::records {
namespace {

// Returns the last separator in the first row that is not blank; a comma if the row has none.
char separator_of(std::string_view text) {
  char last = ',';
  bool in_quotes = false, begins_field = true, is_blank = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_quotes) {
      if (c != '"') continue;
      if (i + 1 < text.size() && text[i + 1] == '"')
        ++i;
      else
        in_quotes = false;
      continue;
    }
    if (c == '\n' && !is_blank) break;
    in_quotes = c == '"' && begins_field;
    if (c == ',' || c == ';' || c == '\t') last = c;
    begins_field = c == last || c == '\n' || (begins_field && c == ' ');
    if (c != '\n' && c != '\r' && c != ' ') is_blank = false;
  }
  return last;
}

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string name)
    : text_(without_byte_order_mark(text)),
      name_(std::move(name)),
      separator_(separator_of(text_)) {
  require_utf8(text_, name_);
}

bool CsvReader::next(std::vector<CsvField>& row) {
  row.clear();
  while (row.empty()) {
    if (at_ >= text_.size()) return false;
    row.push_back(read_field());
    while (at_ < text_.size() && text_[at_] == separator_) {
      ++at_;
      row.push_back(read_field());
    }
    end_line();
    const CsvField& first = row.front();
    const bool is_blank = row.size() == 1 && !first.quoted &&
                          first.text.find_first_not_of(" \t") == std::string::npos;
    if (is_blank) row.clear();
  }
  return true;
}

CsvField CsvReader::read_field() {
  const size_t begin = at_;
  CsvField field;
  skip_spaces();
  field.line = line_;
  field.column = column();
  if (at_ < text_.size() && text_[at_] == '"') {
    read_quoted(field);
    return field;
  }
  while (!at_end_of_field()) ++at_;
  field.text = text_.substr(begin, at_ - begin);
  return field;
}

void CsvReader::read_quoted(CsvField& field) {
  field.quoted = true;
  for (++at_;; ++at_) {
    if (at_ >= text_.size()) {
      throw Invalid(
          fmt::format("{}: line {}, column {}: expected a second quotation mark at the "
                      "end of the field, found none",
                      name_, field.line, field.column));
    }
    if (text_[at_] == '"') {
      ++at_;
      if (at_ >= text_.size() || text_[at_] != '"') break;
    }
    field.text += text_[at_];
    if (text_[at_] == '\n') {
      ++line_;
      line_begin_ = at_ + 1;
    }
  }
  skip_spaces();
  if (!at_end_of_field()) {
    throw Invalid(fmt::format(
        "{}: line {}, column {}: expected the end of a field after its quotation mark, found '{}'",
        name_, line_, column(), text_[at_]));
  }
}

void CsvReader::skip_spaces() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t') &&
         text_[at_] != separator_)
    ++at_;
}

bool CsvReader::at_end_of_field() const {
  if (at_ >= text_.size() || text_[at_] == separator_ || text_[at_] == '\n') return true;
  return text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n');
}

// Goes from the end of a row to the next one.
void CsvReader::end_line() {
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  if (at_ < text_.size()) ++at_;
  ++line_;
  line_begin_ = at_;
}

}  // namespace muster::records
