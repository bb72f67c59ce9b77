#include "trainer/data/tables/numpy_table.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/error.h"
#include "common/text/whole_number.h"

namespace muster::data {
namespace {

using tables::CellKind;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr uint64_t kMostExact = uint64_t{1} << 53;
constexpr uint64_t kMostColumns = 1'000'000;
constexpr size_t kEndOfZip = 22;        // bytes of the record at the end of a zip file
constexpr uint64_t kMostPacked = 1032;  // the most bytes that deflate makes one of

// An array of a file. `cells` is part of the file's content, or of what was unpacked.
struct NumpyArray {
  std::string name;
  char type = 0;  // f, i, u or b
  uint64_t size = 0;
  bool swapped = false;  // whether the bytes of a cell are in the other order
  bool by_columns = false;
  bool has_columns = false;  // whether it has two axes
  uint64_t rows = 0, columns = 1;
  std::string_view cells;

  template <typename Number>
  Number number_at(uint64_t row, uint64_t column) const {
    const uint64_t index = by_columns ? column * rows + row : row * columns + column;
    char bytes[sizeof(Number)];
    std::memcpy(bytes, cells.data() + index * sizeof(Number), sizeof(Number));
    if (swapped) std::reverse(bytes, bytes + sizeof(Number));
    return std::bit_cast<Number>(bytes);
  }
};

// A little-endian number of a zip file; 0 beyond its end.
uint64_t little(std::string_view text, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i)
    if (at + i < text.size())
      number |= uint64_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  return number;
}

double half(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : kNoNumber;
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

// Calls `take` with the cell as a number of its own type.
template <typename Take>
auto with_cell(const NumpyArray& array, uint64_t row, uint64_t column, Take take) {
  const bool is_signed = array.type == 'i';
  if (array.type == 'f') {
    if (array.size == 2) return take(half(array.number_at<uint16_t>(row, column)));
    if (array.size == 4) return take(double{array.number_at<float>(row, column)});
    return take(array.number_at<double>(row, column));
  }
  switch (array.size) {
    case 1:
      return is_signed ? take(int64_t{array.number_at<int8_t>(row, column)})
                       : take(uint64_t{array.number_at<uint8_t>(row, column)});
    case 2:
      return is_signed ? take(int64_t{array.number_at<int16_t>(row, column)})
                       : take(uint64_t{array.number_at<uint16_t>(row, column)});
    case 4:
      return is_signed ? take(int64_t{array.number_at<int32_t>(row, column)})
                       : take(uint64_t{array.number_at<uint32_t>(row, column)});
    default:
      return is_signed ? take(array.number_at<int64_t>(row, column))
                       : take(array.number_at<uint64_t>(row, column));
  }
}

// Reads the value of a key of the header, Python's text of a dictionary, up to one of `ends`.
std::string_view value_of(std::string_view header, std::string_view key, char end) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = header.substr(at + key.size());
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(": ")));
  return rest.substr(0, rest.find(end, 1));
}

class ArrayParser {
 public:
  ArrayParser(std::string_view content, std::string name, const std::string& file)
      : content_(content), file_(file) {
    array_.name = std::move(name);
  }

  NumpyArray parse() {
    if (!content_.starts_with("\x93NUMPY")) refuse("an array of NumPy", "another beginning");
    const bool is_first = little(content_, 6, 1) == 1;
    const size_t begin = is_first ? 10 : 12;
    const uint64_t size = little(content_, 8, is_first ? 2 : 4);
    if (content_.size() < begin || size > content_.size() - begin)
      refuse("a whole header", "the file's end");
    const std::string_view header = content_.substr(begin, size);
    parse_type(value_of(header, "'descr'", '\''));
    array_.by_columns = value_of(header, "'fortran_order'", ',') == "True";
    parse_shape(value_of(header, "'shape'", ')'));
    array_.cells = content_.substr(begin + size);
    uint64_t cells = 0, bytes = 0;
    if (__builtin_mul_overflow(array_.rows, array_.columns, &cells) ||
        __builtin_mul_overflow(cells, array_.size, &bytes) || bytes > array_.cells.size())
      refuse(fmt::format("{} x {} cells of {} bytes", array_.rows, array_.columns, array_.size),
             fmt::format("{} bytes", array_.cells.size()));
    return std::move(array_);
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    throw Invalid(fmt::format("{}: {}expected {}, found {}", file_,
                              array_.name.empty() ? "" : "array " + array_.name + ": ", expected,
                              found));
  }

  void parse_type(std::string_view text) {  // '<f8
    const std::string_view known = "fiub";
    const auto size = whole_number<uint64_t>(text.size() > 3 ? text.substr(3) : "");
    const bool is_known = size && known.find(text[2]) != std::string_view::npos &&
                          (*size == 1 || *size == 2 || *size == 4 || *size == 8) &&
                          (text[2] != 'f' || *size > 1) && (text[2] != 'b' || *size == 1);
    if (!is_known)
      refuse("numbers or booleans", "the type " + std::string(text.substr(0, 32)) + "'");
    array_.type = text[2];
    array_.size = *size;
    array_.swapped = text[1] == (std::endian::native == std::endian::little ? '>' : '<');
  }

  void parse_shape(std::string_view text) {  // "(150, 4", "(150,"
    std::vector<uint64_t> axes;
    while (!text.empty()) {
      text.remove_prefix(std::min(text.size(), text.find_first_not_of("(, ")));
      const size_t end = std::min(text.size(), text.find(','));
      if (end == 0) break;
      const auto axis = whole_number<uint64_t>(text.substr(0, end));
      if (!axis || axes.size() == 2) refuse("one or two axes", "another shape");
      axes.push_back(*axis);
      text.remove_prefix(end);
    }
    if (axes.empty()) refuse("one or two axes", "none");
    array_.rows = axes[0];
    array_.has_columns = axes.size() == 2;
    if (array_.has_columns) array_.columns = axes[1];
    if (array_.columns < 1 || array_.columns > kMostColumns)
      refuse(fmt::format("from 1 to {} columns", kMostColumns), std::to_string(array_.columns));
  }

  std::string_view content_;
  const std::string& file_;
  NumpyArray array_;
};

// Unpacks the entries of a zip file.
class ZipReader {
 public:
  ZipReader(std::string_view content, const std::string& file) : content_(content), file_(file) {}

  // Calls `take` with the name and the content of each.
  void read(const std::function<void(std::string name, std::string content)>& take) const {
    const size_t end = content_.rfind(std::string_view("PK\5\6", 4));
    if (end == std::string_view::npos || content_.size() - end < kEndOfZip)
      refuse("the end of a zip file");
    const uint64_t entries = little(content_, end + 10, 2);
    size_t at = little(content_, end + 16, 4);
    for (uint64_t i = 0; i < entries; ++i) {
      if (at >= content_.size() || content_.substr(at, 4) != std::string_view("PK\1\2", 4))
        refuse("an entry of a zip file");
      const uint64_t name = little(content_, at + 28, 2);
      take(std::string(part(at + 46, name)), unpack(at));
      at += 46 + name + little(content_, at + 30, 2) + little(content_, at + 32, 2);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& expected) const {
    throw Invalid(file_ + ": expected " + expected + ", found something else: it is damaged");
  }

  std::string_view part(uint64_t at, uint64_t size) const {
    if (at > content_.size() || size > content_.size() - at) refuse("a whole entry of a zip file");
    return content_.substr(at, size);
  }

  // `at` is the place of the entry in the directory.
  std::string unpack(size_t at) const {
    const uint64_t method = little(content_, at + 10, 2), packed = little(content_, at + 20, 4);
    const uint64_t size = little(content_, at + 24, 4), begin = little(content_, at + 42, 4);
    const uint64_t data =
        begin + 30 + little(content_, begin + 26, 2) + little(content_, begin + 28, 2);
    const std::string_view bytes = part(data, packed);
    if (method == 0) return std::string(bytes);
    if (method != 8 || size > packed * kMostPacked) refuse("an entry that is stored or deflated");
    std::string out(size, '\0');
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw Unavailable("zlib: no memory");
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int result = inflate(&stream, Z_FINISH);
    const bool is_whole = result == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(out.data()), static_cast<uInt>(size));
    if (!is_whole || sum != little(content_, at + 16, 4)) refuse("the bytes of an entry");
    return out;
  }

  std::string_view content_;
  const std::string& file_;
};

class NumpyTable : public tables::Table {
 public:
  NumpyTable(std::string content, const std::string& file) : content_(std::move(content)) {
    if (content_.starts_with("PK")) {
      ZipReader(content_, file).read([&](std::string name, std::string bytes) {
        if (name.ends_with(".npy")) name.resize(name.size() - 4);
        unpacked_.push_back(std::make_unique<std::string>(std::move(bytes)));
        add(ArrayParser(*unpacked_.back(), std::move(name), file).parse(), file);
      });
    } else {
      add(ArrayParser(content_, "", file).parse(), file);
    }
    if (arrays_.empty()) throw Invalid(file + ": expected arrays, found none");
    rows_of_blocks_ = {rows()};
  }

  const std::vector<tables::ColumnInfo>& columns() const override { return columns_; }
  const std::vector<uint64_t>& rows_of_blocks() const override { return rows_of_blocks_; }

  int64_t read_numbers(size_t /*block*/, size_t column, std::span<double> cells) const override {
    const auto& [array, place] = places_[column];
    int64_t inexact = -1;
    for (uint64_t row = 0; row < rows(); ++row) {
      const bool is_exact = with_cell(arrays_[array], row, place, [&](auto number) {
        cells[row] = static_cast<double>(number);
        if constexpr (std::is_same_v<decltype(number), double>)
          return true;
        else
          return (number < 0 ? uint64_t{0} - static_cast<uint64_t>(number)
                             : static_cast<uint64_t>(number)) <= kMostExact;
      });
      if (!is_exact && inexact < 0) inexact = static_cast<int64_t>(row);
    }
    return inexact;
  }

  tables::Texts read_texts(size_t /*block*/, size_t column) const override {
    const auto& [number_of_array, place] = places_[column];
    const auto& array = arrays_[number_of_array];
    tables::Texts texts;
    std::unordered_map<std::string, int32_t> known;
    for (uint64_t row = 0; row < rows(); ++row) {
      const std::string text = with_cell(array, row, place, [&](auto number) {
        if (array.type == 'b') return std::string(number != 0 ? "true" : "false");
        if constexpr (std::is_same_v<decltype(number), double>)
          if (std::isnan(number)) return std::string();
        return fmt::format("{}", number);
      });
      const auto next = static_cast<int32_t>(texts.values.size());
      const auto [at, is_new] =
          text.empty() ? std::pair(known.end(), false) : known.try_emplace(text, next);
      if (is_new) texts.values.push_back(text);
      texts.cells.push_back(text.empty() ? -1 : at->second);
    }
    return texts;
  }

  // No column of an array has lists.
  tables::Lists read_lists(size_t /*block*/, size_t /*column*/) const override { return {}; }

 private:
  uint64_t rows() const { return arrays_.front().rows; }

  void add(NumpyArray array, const std::string& file) {
    if (!arrays_.empty() && array.rows != rows())
      throw Invalid(fmt::format("{}: array {}: expected {} rows, as array {} has, found {}", file,
                                array.name, rows(), arrays_.front().name, array.rows));
    const CellKind kind = array.type == 'f'   ? CellKind::number
                          : array.type == 'b' ? CellKind::boolean
                                              : CellKind::integer;
    const std::string name = array.name.empty() ? "column" : array.name;
    const std::string type = fmt::format("{}{}", array.type, array.size);
    const bool is_numbered = array.has_columns || array.name.empty();
    for (uint64_t i = 0; i < array.columns; ++i) {
      columns_.push_back({is_numbered ? name + std::to_string(i + 1) : name, kind, type});
      places_.emplace_back(arrays_.size(), i);
    }
    arrays_.push_back(std::move(array));
  }

  const std::string content_;
  std::vector<std::unique_ptr<std::string>> unpacked_;
  std::vector<NumpyArray> arrays_;
  std::vector<uint64_t> rows_of_blocks_;  // one: the arrays are read as a whole
  std::vector<tables::ColumnInfo> columns_;
  std::vector<std::pair<size_t, uint64_t>> places_;  // of a column: its array, and which there
};

}  // namespace

std::unique_ptr<const tables::Table> parse_numpy(std::string content, const std::string& name) {
  return std::make_unique<NumpyTable>(std::move(content), name);
}

}  // namespace muster::data
