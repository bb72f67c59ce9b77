// The library around Apache Arrow. If Arrow's headers are not there, the library is empty: then
// whoever opens it finds no function in it.
#include "trainer/tables/arrow/arrow_table.h"

#if __has_include(<arrow/api.h>)

#include <arrow/api.h>
#include <arrow/csv/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <arrow/util/compression.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "trainer/tables/text_numbers.h"

namespace muster::tables {
namespace {

using arrow::Array;
using arrow::Type;

constexpr int64_t kExact = int64_t{1} << 53;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Arrow's threads would compete with those that train.
constexpr bool kThreads = false;

bool is_list_type(Type::type type) {
  return type == Type::LIST || type == Type::LARGE_LIST || type == Type::FIXED_SIZE_LIST;
}

CellKind kind_of(const arrow::DataType& type) {
  if (is_list_type(type.id())) {
    const CellKind entries = kind_of(*type.field(0)->type());
    if (entries == CellKind::text) return CellKind::texts;
    const bool are_numbers =
        entries == CellKind::integer || entries == CellKind::number || entries == CellKind::boolean;
    return are_numbers ? CellKind::numbers : CellKind::other;
  }
  if (type.id() == Type::DICTIONARY)
    return kind_of(*static_cast<const arrow::DictionaryType&>(type).value_type());
  if (type.id() == Type::NA) return CellKind::empty;
  if (type.id() == Type::BOOL) return CellKind::boolean;
  if (arrow::is_integer(type.id())) return CellKind::integer;
  if (arrow::is_floating(type.id()) || arrow::is_decimal(type.id())) return CellKind::number;
  if (type.id() == Type::STRING || type.id() == Type::LARGE_STRING ||
      type.id() == Type::STRING_VIEW)
    return CellKind::text;
  const bool is_time = arrow::is_temporal(type.id()) || type.id() == Type::DURATION;
  return is_time ? CellKind::time : CellKind::other;
}

double seconds_of(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return 1;
    case arrow::TimeUnit::MILLI:
      return 1e3;
    case arrow::TimeUnit::MICRO:
      return 1e6;
    default:
      return 1e9;
  }
}

// Writes the cells of an array by `value`, which takes the array and a row.
template <typename ArrayType, typename Value>
void write(const Array& array, double* cells, Value value) {
  const auto& typed = static_cast<const ArrayType&>(array);
  for (int64_t row = 0; row < array.length(); ++row)
    cells[row] = array.IsNull(row) ? kMissing : static_cast<double>(value(typed, row));
}

template <typename ArrayType>
void write_values(const Array& array, double* cells, double divisor = 1) {
  write<ArrayType>(array, cells, [divisor](const ArrayType& typed, int64_t row) {
    return divisor == 1 ? static_cast<double>(typed.Value(row))
                        : static_cast<double>(typed.Value(row)) / divisor;
  });
}

// Does as write_values() does. Returns the first row with an integer that is not kept exactly, or
// -1.
template <typename ArrayType>
int64_t write_wide(const Array& array, double* cells) {
  write_values<ArrayType>(array, cells);
  const auto& typed = static_cast<const ArrayType&>(array);
  for (int64_t row = 0; row < array.length(); ++row) {
    if (std::abs(cells[row]) < static_cast<double>(kExact) || array.IsNull(row)) continue;
    const auto value = typed.Value(row);
    if constexpr (std::is_signed_v<decltype(value)>) {
      if (value < -kExact) return row;
    }
    if (value > 0 && static_cast<uint64_t>(value) > static_cast<uint64_t>(kExact)) return row;
  }
  return -1;
}

template <typename ArrayType>
void write_decimals(const Array& array, double* cells) {
  const int32_t scale = static_cast<const arrow::DecimalType&>(*array.type()).scale();
  write<ArrayType>(array, cells, [scale](const ArrayType& typed, int64_t row) {
    return typename arrow::TypeTraits<typename ArrayType::TypeClass>::CType(typed.GetValue(row))
        .ToDouble(scale);
  });
}

double time_divisor(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::TIMESTAMP:
      return seconds_of(static_cast<const arrow::TimestampType&>(type).unit());
    case Type::DURATION:
      return seconds_of(static_cast<const arrow::DurationType&>(type).unit());
    case Type::DATE32:
      return 1.0 / 86400;
    case Type::DATE64:
      return 1e3;
    default:
      return seconds_of(static_cast<const arrow::TimeType&>(type).unit());
  }
}

int64_t write_integers(const Array& array, double* cells) {
  switch (array.type_id()) {
    case Type::INT8:
      return write_values<arrow::Int8Array>(array, cells), -1;
    case Type::UINT8:
      return write_values<arrow::UInt8Array>(array, cells), -1;
    case Type::INT16:
      return write_values<arrow::Int16Array>(array, cells), -1;
    case Type::UINT16:
      return write_values<arrow::UInt16Array>(array, cells), -1;
    case Type::INT32:
      return write_values<arrow::Int32Array>(array, cells), -1;
    case Type::UINT32:
      return write_values<arrow::UInt32Array>(array, cells), -1;
    case Type::INT64:
      return write_wide<arrow::Int64Array>(array, cells);
    default:
      return write_wide<arrow::UInt64Array>(array, cells);
  }
}

void write_times(const Array& array, double* cells) {
  const double divisor = time_divisor(*array.type());
  if (array.type_id() == Type::DATE32 || array.type_id() == Type::TIME32) {
    // Both have 32 bits, and so the same layout.
    const arrow::Int32Array values(array.length(), array.data()->buffers[1],
                                   array.data()->buffers[0], array.null_count(), array.offset());
    return write_values<arrow::Int32Array>(values, cells, divisor);
  }
  const arrow::Int64Array values(array.length(), array.data()->buffers[1], array.data()->buffers[0],
                                 array.null_count(), array.offset());
  write_values<arrow::Int64Array>(values, cells, divisor);
}

int64_t write_numbers(const Array& array, double* cells);

// Each cell of the dictionary is converted once.
int64_t write_dictionary(const arrow::DictionaryArray& array, double* cells) {
  std::vector<double> values(static_cast<size_t>(array.dictionary()->length()));
  const int64_t inexact = write_numbers(*array.dictionary(), values.data());
  int64_t found = -1;
  for (int64_t row = 0; row < array.length(); ++row) {
    if (array.IsNull(row)) {
      cells[row] = kMissing;
      continue;
    }
    const int64_t index = array.GetValueIndex(row);
    if (found < 0 && index == inexact) found = row;
    cells[row] = values[static_cast<size_t>(index)];
  }
  return found;
}

int64_t write_numbers(const Array& array, double* cells) {
  const Type::type type = array.type_id();
  if (type == Type::DICTIONARY)
    return write_dictionary(static_cast<const arrow::DictionaryArray&>(array), cells);
  if (arrow::is_integer(type)) return write_integers(array, cells);
  switch (type) {
    case Type::BOOL:
      write_values<arrow::BooleanArray>(array, cells);
      break;
    case Type::HALF_FLOAT:
      write<arrow::HalfFloatArray>(array, cells, [](const auto& typed, int64_t row) {
        return arrow::util::Float16::FromBits(typed.Value(row)).ToDouble();
      });
      break;
    case Type::FLOAT:
      write_values<arrow::FloatArray>(array, cells);
      break;
    case Type::DOUBLE:
      write_values<arrow::DoubleArray>(array, cells);
      break;
    case Type::DECIMAL32:
      write_decimals<arrow::Decimal32Array>(array, cells);
      break;
    case Type::DECIMAL64:
      write_decimals<arrow::Decimal64Array>(array, cells);
      break;
    case Type::DECIMAL128:
      write_decimals<arrow::Decimal128Array>(array, cells);
      break;
    case Type::DECIMAL256:
      write_decimals<arrow::Decimal256Array>(array, cells);
      break;
    case Type::NA:
      std::fill_n(cells, array.length(), kMissing);
      break;
    default:
      write_times(array, cells);
  }
  return -1;
}

// Turns the cells of chunks into numbers of different texts.
class TextReader {
 public:
  void read(const Array& array) {
    if (array.type_id() != Type::DICTIONARY) {
      for (int64_t row = 0; row < array.length(); ++row)
        result_.cells.push_back(number(array, row));
      return;
    }
    const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
    if (coded.dictionary()->data() != dictionary_) {
      dictionary_ = coded.dictionary()->data();
      of_dictionary_.assign(static_cast<size_t>(dictionary_->length), kUnseen);
    }
    const int32_t* const indices =
        coded.indices()->type_id() == Type::INT32
            ? static_cast<const arrow::Int32Array&>(*coded.indices()).raw_values()
            : nullptr;
    for (int64_t row = 0; row < array.length(); ++row) {
      if (array.IsNull(row)) {
        result_.cells.push_back(-1);
        continue;
      }
      const int64_t index = indices == nullptr ? coded.GetValueIndex(row) : indices[row];
      int32_t& known = of_dictionary_[static_cast<size_t>(index)];
      if (known == kUnseen) known = number(*coded.dictionary(), index);
      result_.cells.push_back(known);
    }
  }
  Texts take() { return std::move(result_); }

 private:
  static constexpr int32_t kUnseen = -2;

  int32_t number(const Array& array, int64_t row) {
    if (array.IsNull(row)) return -1;
    switch (array.type_id()) {
      case Type::STRING:
        return number(static_cast<const arrow::StringArray&>(array).GetView(row));
      case Type::LARGE_STRING:
        return number(static_cast<const arrow::LargeStringArray&>(array).GetView(row));
      case Type::STRING_VIEW:
        return number(static_cast<const arrow::StringViewArray&>(array).GetView(row));
      default:
        return number(array.GetScalar(row).ValueOrDie()->ToString());
    }
  }
  int32_t number(std::string_view text) { return numbers_.number(text, result_.values); }

  Texts result_;
  TextNumbers numbers_;
  // The last dictionary, and the number of each of its texts that was seen.
  std::shared_ptr<arrow::ArrayData> dictionary_;
  std::vector<int32_t> of_dictionary_;
};

// Calls `each` with the array of all entries, and the numbers of entries of each list.
template <typename ListType, typename Each>
void with_entries(const Array& array, Each each) {
  const auto& lists = static_cast<const ListType&>(array);
  std::vector<uint64_t> counts;
  for (int64_t row = 0; row < lists.length(); ++row)
    counts.push_back(lists.IsNull(row) ? 0 : static_cast<uint64_t>(lists.value_length(row)));
  each(*lists.Flatten().ValueOrDie(), counts);
}

// Throws std::runtime_error if `result` has no value.
template <typename Value>
Value value_of(arrow::Result<Value> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return *std::move(result);
}

using Chunks = std::shared_ptr<arrow::ChunkedArray>;

// A file of Arrow's types. Other files differ in how a block of a column is read.
class ArrowTable : public Table {
 public:
  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  const std::vector<uint64_t>& rows_of_blocks() const override { return rows_of_blocks_; }

  int64_t read_numbers(size_t block, size_t column, std::span<double> cells) const override {
    int64_t first = 0, inexact = -1;
    const Chunks found = read(block, column);
    for (const auto& chunk : found->chunks()) {
      const int64_t row = write_numbers(*chunk, cells.data() + first);
      if (row >= 0 && inexact < 0) inexact = first + row;
      first += chunk->length();
    }
    return inexact;
  }

  Texts read_texts(size_t block, size_t column) const override {
    TextReader reader;
    const Chunks found = read(block, column);
    for (const auto& chunk : found->chunks()) reader.read(*chunk);
    return reader.take();
  }

  Lists read_lists(size_t block, size_t column) const override {
    Lists lists;
    TextReader texts;
    const bool are_texts = columns_[column].kind == CellKind::texts;
    const auto add = [&](const Array& entries, const std::vector<uint64_t>& counts) {
      uint64_t end = lists.ends.empty() ? 0 : lists.ends.back();
      for (const uint64_t count : counts) lists.ends.push_back(end += count);
      if (are_texts) {
        texts.read(entries);
        return;
      }
      const size_t before = lists.numbers.size();
      lists.numbers.resize(before + static_cast<size_t>(entries.length()));
      if (write_numbers(entries, lists.numbers.data() + before) >= 0)
        throw std::runtime_error(
            "a list with an integer beyond 2^53, up to which numbers are exact");
    };
    const Chunks found = read(block, column);
    for (const auto& chunk : found->chunks()) {
      if (chunk->type_id() == Type::LIST)
        with_entries<arrow::ListArray>(*chunk, add);
      else if (chunk->type_id() == Type::LARGE_LIST)
        with_entries<arrow::LargeListArray>(*chunk, add);
      else
        with_entries<arrow::FixedSizeListArray>(*chunk, add);
    }
    lists.texts = texts.take();
    return lists;
  }

 protected:
  explicit ArrowTable(const arrow::Schema& schema) {
    for (const auto& field : schema.fields()) {
      const arrow::DataType* type = field->type().get();
      if (type->id() == Type::DICTIONARY)
        type = static_cast<const arrow::DictionaryType*>(type)->value_type().get();
      columns_.push_back({field->name(), kind_of(*type), type->ToString()});
    }
  }
  void add_block(int64_t rows) { rows_of_blocks_.push_back(static_cast<uint64_t>(rows)); }

 private:
  virtual Chunks read(size_t block, size_t column) const = 0;

  std::vector<ColumnInfo> columns_;
  std::vector<uint64_t> rows_of_blocks_;
};

// A CSV file, which is read as a whole, since only all of its cells tell the types of its columns.
class CsvTable : public ArrowTable {
 public:
  explicit CsvTable(std::shared_ptr<arrow::Table> table)
      : ArrowTable(*table->schema()), table_(std::move(table)) {
    add_block(table_->num_rows());
  }

 private:
  Chunks read(size_t, size_t column) const override {
    return table_->column(static_cast<int>(column));
  }

  const std::shared_ptr<arrow::Table> table_;
};

class ParquetTable : public ArrowTable {
 public:
  ParquetTable(std::unique_ptr<parquet::arrow::FileReader> reader, const arrow::Schema& schema)
      : ArrowTable(schema), reader_(std::move(reader)) {
    const auto metadata = reader_->parquet_reader()->metadata();
    for (int i = 0; i < reader_->num_row_groups(); ++i)
      add_block(metadata->RowGroup(i)->num_rows());
  }

 private:
  Chunks read(size_t block, size_t column) const override {
    const parquet::arrow::SchemaField* field = &reader_->manifest().schema_fields[column];
    while (!field->is_leaf()) field = &field->children.front();
    const std::vector<int> leaf{field->column_index};
    const auto table = value_of(reader_->ReadRowGroup(static_cast<int>(block), leaf));
    if (static_cast<uint64_t>(table->num_rows()) != rows_of_blocks()[block])
      throw std::runtime_error("a row group with fewer rows than the file says");
    return table->column(0);
  }

  const std::unique_ptr<parquet::arrow::FileReader> reader_;
};

// A file of Arrow's own format. A batch is read with all its columns, and kept until another one is
// asked for.
class BatchTable : public ArrowTable {
 public:
  explicit BatchTable(std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader)
      : ArrowTable(*reader->schema()), reader_(std::move(reader)) {
    for (int i = 0; i < reader_->num_record_batches(); ++i) add_block(read_batch(i)->num_rows());
  }

 private:
  Chunks read(size_t block, size_t column) const override {
    const auto batch = static_cast<int>(block);
    if (batch_ == nullptr || batch != number_) batch_ = read_batch(batch);
    number_ = batch;
    return std::make_shared<arrow::ChunkedArray>(batch_->column(static_cast<int>(column)));
  }

  std::shared_ptr<arrow::RecordBatch> read_batch(int number) const {
    auto batch = value_of(reader_->ReadRecordBatch(number));
    if (const auto status = batch->ValidateFull(); !status.ok())
      throw std::runtime_error(status.message());
    return batch;
  }

  const std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
  mutable std::shared_ptr<arrow::RecordBatch> batch_;
  mutable int number_ = -1;
};

using Opened = arrow::Result<std::unique_ptr<Table>>;

// Opens a file, and unpacks it if it begins as gzip does.
arrow::Result<std::shared_ptr<arrow::io::InputStream>> open_text(const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path));
  ARROW_ASSIGN_OR_RAISE(const auto magic, file->Read(2));
  ARROW_RETURN_NOT_OK(file->Seek(0));
  if (magic->ToString() != "\x1f\x8b") return file;
  ARROW_ASSIGN_OR_RAISE(auto codec, arrow::util::Codec::Create(arrow::Compression::GZIP));
  return arrow::io::CompressedInputStream::Make(codec.get(), std::move(file));
}

// Returns Arrow's name of a column without a header: "f0" for "column1".
std::string generated_name(const std::string& name) {
  return "f" + std::to_string(std::atoi(name.c_str() + std::min<size_t>(6, name.size())) - 1);
}

Opened open_csv(const std::string& path, const ReadOptions& options, ReadError& error) {
  ARROW_ASSIGN_OR_RAISE(auto input, open_text(path));
  auto read = arrow::csv::ReadOptions::Defaults();
  read.use_threads = kThreads;
  read.autogenerate_column_names = !options.header;
  auto parse = arrow::csv::ParseOptions::Defaults();
  parse.delimiter = options.separator;
  parse.newlines_in_values = true;
  parse.invalid_row_handler = [&](const arrow::csv::InvalidRow& row) {
    error.text = "expected " + std::to_string(row.expected_columns) + " columns, found " +
                 std::to_string(row.actual_columns);
    if (row.number > 0) error.row = row.number - (options.header ? 2 : 1);
    return arrow::csv::InvalidRowResult::Error;
  };
  auto convert = arrow::csv::ConvertOptions::Defaults();
  convert.decimal_point = options.decimal;
  convert.strings_can_be_null = true;
  // Texts are kept as numbers of different texts, which takes less memory and time.
  convert.auto_dict_encode = true;
  convert.auto_dict_max_cardinality = std::numeric_limits<int32_t>::max();
  for (const std::string& name : options.texts)
    convert.column_types[options.header ? name : generated_name(name)] =
        arrow::dictionary(arrow::int32(), arrow::utf8());
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::csv::TableReader::Make(arrow::io::default_io_context(),
                                                                   input, read, parse, convert));
  ARROW_ASSIGN_OR_RAISE(auto table, reader->Read());
  ARROW_ASSIGN_OR_RAISE(table, arrow::DictionaryUnifier::UnifyTable(*table));
  if (!options.header) {
    std::vector<std::string> names;
    for (int i = 1; i <= table->num_columns(); ++i) names.push_back("column" + std::to_string(i));
    ARROW_ASSIGN_OR_RAISE(table, table->RenameColumns(names));
  }
  return std::make_unique<CsvTable>(std::move(table));
}

Opened open_parquet(const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path));
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(file));
  parquet::ArrowReaderProperties properties(kThreads);
  properties.set_pre_buffer(false);
  // Texts are read as the file's own numbers of texts, so that each different text is copied once.
  for (int i = 0; i < builder.raw_reader()->metadata()->num_columns(); ++i)
    if (builder.raw_reader()->metadata()->schema()->Column(i)->physical_type() ==
        parquet::Type::BYTE_ARRAY)
      properties.set_read_dictionary(i, true);
  ARROW_ASSIGN_OR_RAISE(auto reader, builder.properties(properties)->Build());
  std::shared_ptr<arrow::Schema> schema;
  ARROW_RETURN_NOT_OK(reader->GetSchema(&schema));
  return std::make_unique<ParquetTable>(std::move(reader), *schema);
}

Opened open_batches(const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path));
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = kThreads;
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchFileReader::Open(file, options));
  return std::make_unique<BatchTable>(std::move(reader));
}

Opened open(const std::string& path, const ReadOptions& options, ReadError& error) {
  if (options.format == "parquet") return open_parquet(path);
  if (options.format == "arrow") return open_batches(path);
  return open_csv(path, options, error);
}

arrow::Result<std::shared_ptr<Array>> array_of(const WrittenColumn& column) {
  if (column.is_text) {
    arrow::StringBuilder texts;
    ARROW_RETURN_NOT_OK(texts.AppendValues(column.texts));
    return texts.Finish();
  }
  arrow::DoubleBuilder numbers;
  ARROW_RETURN_NOT_OK(numbers.AppendValues(column.numbers));
  return numbers.Finish();
}

arrow::Status write_parquet(const std::string& path, const std::vector<WrittenColumn>& columns) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<std::shared_ptr<Array>> arrays;
  for (const WrittenColumn& column : columns) {
    ARROW_ASSIGN_OR_RAISE(arrays.emplace_back(), array_of(column));
    fields.push_back(arrow::field(column.name, arrays.back()->type()));
  }
  const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::FileOutputStream::Open(path));
  ARROW_RETURN_NOT_OK(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file));
  return file->Close();
}

}  // namespace
}  // namespace muster::tables

std::string muster_write_parquet(const char* path,
                                 const std::vector<muster::tables::WrittenColumn>& columns) {
  try {
    const arrow::Status status = muster::tables::write_parquet(path, columns);
    return status.ok() ? "" : status.message();
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

muster::tables::Table* muster_open_table(const char* path,
                                         const muster::tables::ReadOptions& options,
                                         muster::tables::ReadError& error) {
  try {
    auto table = muster::tables::open(path, options, error);
    if (table.ok()) return table->release();
    if (error.text.empty())
      error.text = "expected a whole file of this format, found: " + table.status().message();
  } catch (const std::exception& thrown) {
    error.text = std::string("expected a whole file of this format, found: ") + thrown.what();
  }
  return nullptr;
}

#endif
