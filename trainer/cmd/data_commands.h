#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "trainer/data/sources/digits.h"
#include "trainer/spec/data_source.h"

namespace muster::cmd {

// `muster-trainer data`: what makes data sets, and what looks at those of a user.
class DataCommands {
 public:
  // Adds the commands to `app`, whose options refer to this object.
  explicit DataCommands(CLI::App& app);
  DataCommands(const DataCommands&) = delete;
  DataCommands& operator=(const DataCommands&) = delete;

  bool is_called() const { return data_->parsed(); }
  // Runs the command that was called. Throws Invalid and WriteError.
  void run() const;

 private:
  CLI::App* add_table_command(const std::string& name, const std::string& what,
                              const std::string& example);
  void add_digits(const std::string& program);
  void make_digits() const;
  void describe() const;
  void suggest() const;

  CLI::App* data_;
  CLI::App* digits_ = nullptr;
  CLI::App* describe_ = nullptr;
  CLI::App* suggest_ = nullptr;
  data::DigitsOptions digits_options_;
  std::filesystem::path file_;  // a table
  std::string separator_;       // empty: found in the file
  std::string decimal_ = ".";
  bool no_header_ = false;
  std::string target_;
  std::string output_;  // of describe: text or json; of suggest: a file
};

}  // namespace muster::cmd
