#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "common/documents/problem.h"

namespace muster::cmd {

// The manifest that stands for standard input.
inline constexpr const char* kStandardInput = "-";

// Returns the name of a manifest's file in messages.
std::string source_name(const std::filesystem::path& file);

// An object of a manifest's file.
struct ManifestObject {
  Document document;
  bool is_job = true;  // a TrainingJob or one of Kubeflow's jobs, rather than, say, a claim
};

// Returns the objects in a file of manifests or on standard input, like `kubectl apply -f`. A
// single object is taken for a job, whatever its kind. Throws Invalid.
std::vector<ManifestObject> read_manifests(const std::filesystem::path& file);

// Throws Invalid (kUsage) if standard input is among `files` more than once: it can be read once.
void require_one_standard_input(const std::vector<std::filesystem::path>& files);

// Returns a problem for each job of a file that has the namespace and name of one before it, which
// it would replace on a cluster.
std::vector<Problem> repeated_jobs(const std::vector<ManifestObject>& objects);

// Returns "TrainingJob mnist" for an object of a manifest.
std::string title(const Document& document);

// Returns a job of read_manifests() with --set applied, not yet validated. For a TFJob it returns
// the TrainingJob that `muster convert` would make, and prints what is not carried over. Throws
// Invalid.
Document job_manifest(Document document, const std::vector<std::string>& sets);

// Returns the job_manifest() of a file that holds exactly one job. Names in `notes` the file's
// other objects, which are only for Kubernetes. Throws Invalid if the file has no job or several.
Document load_manifest(const std::filesystem::path& file, const std::vector<std::string>& sets,
                       std::vector<std::string>& notes);

// Returns the note on an object that is not a job.
std::string note_of_other(const Document& document, const std::string& what_happens);

}  // namespace muster::cmd
