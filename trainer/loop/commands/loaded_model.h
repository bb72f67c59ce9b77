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
  std::string file;  // that has its training
  Training training;
  Json samples;  // the format of its samples (data::SampleFormat); null or empty: not kept
  std::unique_ptr<compute::Engine> engine;
};

// Fills in what a training leaves open of its model until it has data, before there is an engine.
using CompleteModel = std::function<void(LoadedModel&)>;

// Loads what `where` names: a checkpoint's folder; a folder that has checkpoints/ (a job's
// directory or a --storage folder), of which the newest undamaged checkpoint is taken, or the best
// one after a training that has ended with restoreBest, and a damaged one is skipped with a
// warning; or an exported model or its folder. Throws Invalid, also what `complete` throws.
LoadedModel load_model(const std::filesystem::path& where, const CompleteModel& complete);

}  // namespace muster::loop
