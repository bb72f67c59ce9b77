#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/documents/document.h"

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

// Returns the objects of a file of manifests, or of standard input, as `kubectl apply -f` finds
// them there. A single object is a job, whatever it says. Throws Invalid.
std::vector<ManifestObject> read_manifests(const std::filesystem::path& file);

// Returns a job of read_manifests() with --set applied, not yet validated; of a TFJob the
// TrainingJob that `muster convert` makes of it, and what is not carried over is printed. Throws
// Invalid.
Document job_manifest(Document document, const std::vector<std::string>& sets);

// Returns the job_manifest() of a file that holds one job. Names in `notes` the objects beside it,
// which are for Kubernetes only. Throws Invalid where there is none, or another one.
Document load_manifest(const std::filesystem::path& file, const std::vector<std::string>& sets,
                       std::vector<std::string>& notes);

// Returns the note on an object that is no job.
std::string note_of_other(const Document& document, const std::string& what_happens);

}  // namespace muster::cmd
