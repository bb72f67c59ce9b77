#include "operator/cmd/job/manifests.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>

#include "common/documents/documents.h"
#include "common/documents/json.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "common/system/file.h"
#include "operator/convert/tfjob.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = size_t{4} << 20;

// Returns at most one byte more than a document may have, so that the parser refuses a longer one.
std::string read_stream(std::istream& stream) {
  std::string text(kMaxBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

std::string read_text(const fs::path& file) {
  if (file == kStandardInput) return read_stream(std::cin);
  std::error_code ignored;
  if (!fs::is_fifo(file, ignored)) return read_file(file, kMaxBytes);
  std::ifstream pipe(file);  // for example <(helm template ...)
  return read_stream(pipe);
}

std::string text_at(const Document& document, const char* key) {
  return string_or(document.value(), key, "");
}

// An object without a kind is taken for a job, so that its fields are checked.
bool looks_like_job(const Document& document) {
  const std::string version = text_at(document, "apiVersion");
  return version.empty() || text_at(document, "kind").empty() ||
         version.starts_with("muster.dev/") || convert::is_kubeflow_job(document);
}

// Names what the file is if it is no manifest of a job, and what to do with it; "" if it may be
// one.
std::string what_it_is(const Document& document) {
  const std::string version = text_at(document, "apiVersion"), kind = text_at(document, "kind");
  if (version.empty() || kind.empty() || kind == "TFJob" || version.starts_with("muster.dev/"))
    return "";
  // A typing error of a job is left to the schema.
  if (kind == "TrainingJob") return "";
  std::string text = "a " + kind + " (" + version + ")";
  const bool of_kubeflow = version.find("kubeflow.org/") != std::string::npos;
  return text + (of_kubeflow
                     ? "; write a TrainingJob with the same container, as examples/pytorch.yaml "
                       "does for a PyTorchJob"
                     : "; `kubectl apply` takes it");
}

std::string name_of(const Document& document) {
  return string_or(member(document.value(), "metadata"), "name", "");
}

}  // namespace

std::string title(const Document& document) {
  const std::string name = name_of(document);
  return text_at(document, "kind") + (name.empty() ? "" : " " + name);
}

void require_one_standard_input(const std::vector<fs::path>& files) {
  if (std::ranges::count(files, fs::path(kStandardInput)) > 1)
    throw Invalid("expected \"-\", standard input, once, found it again", kUsage);
}

std::vector<Problem> repeated_jobs(const std::vector<ManifestObject>& objects) {
  std::vector<Problem> problems;
  std::map<std::pair<std::string, std::string>, std::string> seen;  // where each job is
  for (const auto& [document, is_job] : objects) {
    const std::string path = "metadata.name", name = name_of(document);
    if (!is_job || name.empty()) continue;
    const Json& metadata = member(document.value(), "metadata");
    const auto [job, is_new] =
        seen.try_emplace({string_or(metadata, "namespace", ""), name}, document.locate(path));
    if (!is_new)
      problems.push_back({path, document.locate(path), "a name that no other job of the file has",
                          fmt::format("{}, as in {}", name, job->second), ""});
  }
  return problems;
}

std::string source_name(const fs::path& file) {
  return file == kStandardInput ? "standard input" : file.string();
}

std::vector<ManifestObject> read_manifests(const fs::path& file) {
  std::vector<ManifestObject> objects;
  try {
    for (Document& document : parse_documents(read_text(file), source_name(file)))
      objects.push_back({std::move(document)});
  } catch (const Malformed& error) {
    if (file.extension() == ".py" || file.extension() == ".sh")
      throw Invalid(
          source_name(file) +
              ": expected a manifest, found a script; write a manifest whose container has it "
              "as its command, as examples/pytorch.yaml has",
          kBadInput);
    if (file.extension() != ".config") throw;
    throw Malformed(error.where(), error.expected(),
                    error.found() +
                        " (`muster convert` makes a manifest of a pipeline of the TF "
                        "Object Detection API)");
  }
  if (objects.size() > 1)
    for (ManifestObject& object : objects) object.is_job = looks_like_job(object.document);
  return objects;
}

Document job_manifest(Document document, const std::vector<std::string>& sets) {
  if (const std::string found = what_it_is(document); !found.empty())
    throw Invalid(document.locate("kind") + ": kind: expected TrainingJob or TFJob, found " + found,
                  kBadInput);
  if (convert::is_kubeflow_job(document)) {
    convert::Converted converted = convert::convert_tfjob(document);
    for (const auto& [what, lines] : {std::pair("to be set: ", converted.to_set),
                                      std::pair("not carried over: ", converted.not_carried)})
      for (const std::string& line : lines)
        print(stderr, "{}: {}{}\n", document.source(), what, line);
    document = Document::of(std::move(converted.job), document, std::move(converted.renamed));
  }
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Invalid("--set: expected path=value, found \"" + set + "\"", kUsage);
    }
    try {
      document.set(set.substr(0, equals), set.substr(equals + 1));
    } catch (const Invalid& error) {
      throw Invalid("--set " + set + ": " + error.what(), kUsage);
    }
  }
  return document;
}

Document load_manifest(const fs::path& file, const std::vector<std::string>& sets,
                       std::vector<std::string>& notes) {
  std::vector<Document> jobs;
  std::string others;
  for (ManifestObject& object : read_manifests(file)) {
    if (object.is_job) {
      jobs.push_back(std::move(object.document));
    } else {
      notes.push_back(note_of_other(object.document, "is for Kubernetes, and is not used here"));
      others += (others.empty() ? "" : ", ") + title(object.document);
    }
  }
  if (jobs.empty())
    throw Invalid(source_name(file) + ": expected a job, found only " + others, kBadInput);
  if (jobs.size() > 1) {
    std::string names;
    for (const Document& job : jobs) names += (names.empty() ? "" : ", ") + name_of(job);
    throw Invalid(fmt::format("{}: expected one job, found {}: {}; put each into a file of its own",
                              source_name(file), jobs.size(), names),
                  kBadInput);
  }
  return job_manifest(std::move(jobs.front()), sets);
}

std::string note_of_other(const Document& document, const std::string& what_happens) {
  return fmt::format("{}: {} {}", document.locate("kind"), title(document), what_happens);
}

}  // namespace muster::cmd
