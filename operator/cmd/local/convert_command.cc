#include "common/exit_code.h"
#include "common/program/output.h"
#include "common/system/file.h"
#include "common/system/input_file.h"
#include "operator/api/validate.h"
#include "operator/cmd/local/commands.h"
#include "operator/convert/pipeline_job.h"
#include "operator/convert/tfjob.h"
#include "operator/local/yaml_text.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostManifestBytes = uint64_t{1} << 20;

// Comments and messages must be one line each, also if texts of the original contain line ends.
std::string in_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  return text;
}

// Returns the job as YAML, after comments with notes for the reader.
std::string text_of(const convert::Converted& converted, const std::vector<fs::path>& files) {
  std::string text = "# Made by muster convert of";
  for (const fs::path& file : files) text += " " + in_one_line(file.filename().string());
  text += ".\n";
  const auto add = [&](const char* title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    text += std::string("# ") + title + "\n";
    for (const std::string& line : lines) text += "#   " + in_one_line(line) + "\n";
  };
  add("To be set:", converted.to_set);
  add("Not carried over:", converted.not_carried);
  return text + local::to_yaml(converted.job);
}

bool is_manifest(const fs::path& file) {
  const std::string ending = file.extension();
  return ending == ".yaml" || ending == ".yml" || ending == ".json";
}

convert::Converted converted_of(const std::vector<fs::path>& files) {
  if (is_manifest(files.front())) {
    if (files.size() > 1)
      throw Invalid(
          "expected one manifest of a TFJob, found " + std::to_string(files.size()) + " files",
          kUsage);
    return convert::convert_tfjob(Document::load(files.front()));
  }
  std::vector<convert::PipelineFile> texts;
  for (const fs::path& file : files)
    texts.push_back({file.string(), InputFile(file).text(kMostManifestBytes)});
  return convert::convert_pipeline(convert::parse_pipeline(texts),
                                   convert::job_name_of(files.front().stem().string()));
}

}  // namespace

int convert_files(const std::vector<fs::path>& files, const fs::path& output) {
  for (const fs::path& file : files) {
    std::error_code ignored;
    if (fs::equivalent(file, output, ignored))
      throw Invalid(
          "--output: expected another file than those to convert, found " + output.string(),
          kUsage);
  }
  const convert::Converted converted = converted_of(files);
  const std::string text = text_of(converted, files);
  if (output.empty()) {
    print(stdout, "{}", text);
  } else {
    write_file_atomically(output, text);
  }
  for (const std::string& line : converted.to_set)
    print(stderr, "to be set: {}\n", in_one_line(line));
  for (const std::string& line : converted.not_carried)
    print(stderr, "not carried over: {}\n", in_one_line(line));
  Document document = Document::parse(text, output.empty() ? "the manifest" : output.string());
  const std::vector<Problem> problems = api::validate(document, {});
  for (const Problem& problem : problems) print(stderr, "to be corrected: {}\n", problem.text());
  return problems.empty() ? kSuccess : kBadInput;
}

}  // namespace muster::cmd
