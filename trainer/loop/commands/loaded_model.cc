#include "trainer/loop/commands/loaded_model.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/system/file.h"
#include "common/system/input_file.h"
#include "trainer/checkpoint/files/safetensors.h"
#include "trainer/checkpoint/start/other_formats.h"
#include "trainer/checkpoint/start/take_weights.h"
#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/checkpoint/store/restore.h"
#include "trainer/loop/roles/conclusion.h"

namespace muster::loop {

namespace fs = std::filesystem;

namespace {

// Returns the checkpoints/ of `where` if it is a job's or a --storage folder, or `where` if it is a
// folder of checkpoints itself.
std::optional<fs::path> checkpoints_in(const fs::path& where) {
  std::error_code error;
  if (fs::is_directory(where / "checkpoints", error)) return where / "checkpoints";
  if (!checkpoint::Store(where, 1).list().empty()) return where;
  return std::nullopt;
}

// Returns the checkpoint whose weights were exported by a training that ended with `final`.
checkpoint::Store::Found exported_of(const checkpoint::Store& store,
                                     const checkpoint::Store::Found& final) {
  const std::string source = (final.directory / "manifest.json").string();
  return to_export(store, final, Training::from_json(final.manifest.training, source).spec);
}

checkpoint::Store::Found find(const fs::path& where) {
  std::error_code error;
  if (!is_there(where) || !fs::is_directory(where, error))
    throw Invalid(
        where.string() +
        ": expected a checkpoint's folder, a job's directory or an exported model, found " +
        (is_there(where) ? "something else" : "nothing"));
  if (const auto folder = checkpoints_in(where)) {
    const checkpoint::Store store(*folder, 1);
    const auto newest = store.newest();
    if (!newest) throw Invalid(folder->string() + ": expected a whole checkpoint, found none");
    return newest->manifest.is_final() ? exported_of(store, *newest) : *newest;
  }
  if (!is_there(where / "manifest.json"))
    throw Invalid(where.string() +
                  ": expected a checkpoint's folder, with a manifest.json, a job's directory, with "
                  "checkpoints/, or a folder with a model.safetensors; found none of them");
  return checkpoint::Store::read_whole(where);
}

// Returns the exported model if `where` is a model or a model's folder.
std::optional<fs::path> model_at(const fs::path& where) {
  std::error_code error;
  if (where.extension() == ".safetensors" && fs::is_regular_file(where, error)) return where;
  const fs::path file = where / "model.safetensors";
  const bool is_folder = fs::is_regular_file(file, error) && !fs::exists(where / "manifest.json");
  return is_folder ? std::optional(file) : std::nullopt;
}

// Loads everything but the parameters. `source` is the file that contains `training` and `samples`.
LoadedModel assemble_for(const Json& training, const Json& samples, const std::string& source,
                         const CompleteModel& complete) {
  LoadedModel loaded{{}, source, Training::from_json(training, source), samples, nullptr};
  spec::TrainingSpec& spec = loaded.training.spec;
  complete(loaded);
  compute::EngineOptions options;
  options.device = compute::choose_devices(spec.device, 1).front();
  options.precision = spec.precision;
  options.max_rows = spec.batch_size;
  options.threads = spec.threads;
  loaded.engine = compute::Engine::create(spec.model, options);
  return loaded;
}

LoadedModel load_found(const checkpoint::Store::Found& found, const CompleteModel& complete) {
  const std::string source = (found.directory / "manifest.json").string();
  LoadedModel loaded =
      assemble_for(found.manifest.training, found.manifest.samples, source, complete);
  loaded.source = {{"checkpoint", found.directory.string()},
                   {"step", found.manifest.position.step}};
  compute::HostView parameters(loaded.engine->parameters());
  checkpoint::load_weights(found, loaded.engine->layout(), parameters.values());
  parameters.store();
  return loaded;
}

checkpoint::SafetensorsHeader header_of(const fs::path& file) {
  try {
    return checkpoint::SafetensorsHeader::read(InputFile(file));
  } catch (const Invalid&) {
    const std::string other = checkpoint::other_format(file);
    if (other.empty()) throw;
    throw Invalid(file.string() + ": expected a model that muster has exported, found " + other);
  }
}

LoadedModel load_exported(const fs::path& file, const CompleteModel& complete) {
  const auto header = header_of(file);
  const auto said = [&](const char* what) {
    const auto found = header.metadata.find(what);
    return found == header.metadata.end() ? Json() : parse_or_null(found->second);
  };
  const Json training = said("training");
  if (!training.is_object())
    throw Invalid(file.string() +
                  ": expected a model that muster has exported, with its training in the "
                  "metadata; found none there");
  LoadedModel loaded = assemble_for(training, said("samples"), file.string(), complete);
  loaded.source = {{"model", file.string()}};
  compute::HostView parameters(loaded.engine->parameters());
  const auto weights =
      checkpoint::take_weights("--checkpoint", file, loaded.engine->layout(), parameters.values());
  parameters.store();
  if (!weights.missing.empty())
    throw Invalid(file.string() + ": expected all tensors of its model, found no " +
                  weights.missing[0]);
  return loaded;
}

}  // namespace

// The job may be running. If the job prunes the checkpoint while it is read here, the job's newest
// checkpoint is loaded instead.
LoadedModel load_model(const fs::path& where, const CompleteModel& complete) {
  if (const auto model = model_at(where)) return load_exported(*model, complete);
  for (;;) {
    const checkpoint::Store::Found found = find(where);
    try {
      return load_found(found, complete);
    } catch (const Invalid&) {
      std::error_code error;
      if (found.directory == where || fs::exists(found.directory, error)) throw;
    }
  }
}

}  // namespace muster::loop
