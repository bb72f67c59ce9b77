#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "common/documents/document.h"
#include "trainer/compute/engine.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// The model of a checkpoint, or an exported one, ready to compute.
struct LoadedModel {
  Json source;       // {"checkpoint", "step"} or {"model"}: what was loaded
  std::string file;  // the file that contains `training`
  Training training;
  Json samples;  // format of its samples (data::SampleFormat); null or empty: not saved
  std::unique_ptr<compute::Engine> engine;
};

// A function that fills in the values of a model that are open until there are data. It is called
// before the engine is made.
using CompleteModel = std::function<void(LoadedModel&)>;

// Loads the model at `where`, which is one of these: a checkpoint's folder; a folder with
// checkpoints/ (a job's directory or a --storage folder); an exported model or its folder. In a
// folder with checkpoints/ it loads the newest undamaged checkpoint, or the best one after a
// training that has ended with restoreBest; damaged checkpoints are skipped with a warning. Throws
// Invalid, and the errors of `complete`.
LoadedModel load_model(const std::filesystem::path& where, const CompleteModel& complete);

}  // namespace muster::loop
