#include "trainer/cmd/data_commands.h"

#include <cstdio>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "common/system/file.h"
#include "trainer/cmd/output.h"
#include "trainer/data/tables/suggestion.h"
#include "trainer/data/tables/summary.h"

namespace muster::cmd {

namespace fs = std::filesystem;

DataCommands::DataCommands(CLI::App& app)
    : data_(app.add_subcommand(
          "data", "Look at a table, have a manifest made for it, or make a data set")) {
  data_->require_subcommand(1);
  const std::string& program = app.get_name();
  describe_ = add_table_command(
      "describe", "Columns of a table, with their types, ranges, missing and different values",
      program + " data describe sales.csv");
  describe_->add_option("-o,--output", output_, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  suggest_ =
      add_table_command("suggest", "Make a manifest that trains on a table",
                        program + " data suggest sales.csv --target price --output job.yaml");
  suggest_->add_option("--target", target_, "The column to predict")->required();
  suggest_->add_option("--output", output_, "The manifest to write; printed if left out");
  add_digits(program);
}

CLI::App* DataCommands::add_table_command(const std::string& name, const std::string& what,
                                          const std::string& example) {
  CLI::App* command = data_->add_subcommand(name, what);
  command->add_option("FILE", file_, "CSV, Parquet, Arrow or NumPy")->required();
  command->add_option("--separator", separator_,
                      "Character between two cells of CSV (what the first line has most of)");
  command->add_option("--decimal", decimal_, "Decimal point of CSV: . or ,")
      ->check(CLI::IsMember({".", ","}));
  command->add_flag("--no-header", no_header_, "The first line of CSV has no names of columns");
  command->footer("Example:\n  " + example);
  return command;
}

void DataCommands::add_digits(const std::string& program) {
  digits_ = data_->add_subcommand(
      "digits",
      "Make a set for detectors: digits of MNIST on canvases, with boxes, as TFRecords "
      "and as COCO");
  digits_->add_option("--images", digits_options_.images, "IDX images of digits")
      ->default_val("examples/data/mnist/train-images-idx3-ubyte.gz");
  digits_->add_option("--labels", digits_options_.labels, "Their IDX labels")
      ->default_val("examples/data/mnist/train-labels-idx1-ubyte.gz");
  digits_->add_option("--output", digits_options_.output, "The folder to write to")->required();
  const auto add_number = [this](const char* option, uint64_t& number, const char* what) {
    digits_->add_option(option, number, what)->check(CLI::NonNegativeNumber)->capture_default_str();
  };
  add_number("--train", digits_options_.train, "Canvases for training");
  add_number("--validation", digits_options_.validation, "Canvases for validation");
  add_number("--size", digits_options_.size, "Height and width of a canvas, in pixels");
  add_number("--most-digits", digits_options_.most_digits, "Digits of a canvas, at most");
  add_number("--shards", digits_options_.shards, "TFRecord files for training");
  digits_->add_option("--seed", digits_options_.seed, "Seed of all random numbers")
      ->capture_default_str();
  digits_->footer("Example:\n  " + program + " data digits --output digits");
}

void DataCommands::run() const {
  if (*digits_) make_digits();
  if (*describe_) describe();
  if (*suggest_) suggest();
}

void DataCommands::make_digits() const {
  const data::DigitsOptions& options = digits_options_;
  data::make_digits(options);
  muster::print(stdout,
                "{}: {} canvases for training in {} shards, {} for validation; the same as "
                "COCO in coco/\n",
                options.output.string(), options.train, options.shards, options.validation);
}

namespace {

spec::TableFormat format_of(const std::string& separator, const std::string& decimal, bool header) {
  if (separator.size() > 1)
    throw Invalid("--separator: expected one character, found \"" + separator + "\"", kUsage);
  spec::TableFormat format;
  if (!separator.empty()) format.separator = separator[0];
  format.decimal = decimal[0];
  format.header = header;
  return format;
}

}  // namespace

void DataCommands::describe() const {
  const auto summary = data::summarize(file_, format_of(separator_, decimal_, !no_header_));
  const std::string text =
      output_ == "json" ? json_text(data::to_json(summary)) : data::summary_text(summary);
  std::fputs(text.c_str(), stdout);
}

void DataCommands::suggest() const {
  // Paths of a manifest begin at its folder.
  const fs::path named =
      output_.empty() || file_.is_absolute()
          ? file_
          : fs::absolute(file_).lexically_relative(fs::absolute(output_).parent_path());
  const data::Suggestion suggestion =
      data::suggest(file_, named.string(), format_of(separator_, decimal_, !no_header_), target_);
  for (const std::string& note : suggestion.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  if (output_.empty()) {
    std::fputs(suggestion.manifest.c_str(), stdout);
    return;
  }
  write_file_atomically(output_, suggestion.manifest);
  muster::print(stdout, "{}: written; muster run {} trains it\n", output_, output_);
}

}  // namespace muster::cmd
