#include "operator/convert/learning_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/error.h"

namespace muster::convert {

namespace {

constexpr double kLeastRate = 1e-30;  // a TrainingJob's is above 0

double rate_of(float number, const char* field, LearningRateFields& fields) {
  if (number > 0 && std::isfinite(number)) return as_written(number);
  if (number != 0)
    throw Invalid(
        fmt::format("{}: expected a finite learning rate of at least 0, found {}", field, number));
  fields.not_carried.push_back(
      fmt::format("{}: {} is no learning rate above 0; {:g} is taken", field, number, kLeastRate));
  return kLeastRate;
}

void take(const pipeline::ExponentialRate& given, LearningRateFields& fields) {
  constexpr const char* kName = "exponential_decay_learning_rate";
  fields.rate = rate_of(given.initial_learning_rate(), kName, fields);
  const float factor = given.decay_factor();
  if (given.decay_steps() == 0)
    throw Invalid(fmt::format("{}.decay_steps: expected at least 1, found 0", kName));
  if (factor > 0 && factor <= 1)
    fields.schedule["exponential"] = {{"decaySteps", int64_t{given.decay_steps()}},
                                      {"rate", as_written(factor)},
                                      {"staircase", given.staircase()}};
  else
    fields.not_carried.push_back(
        fmt::format("{}.decay_factor: {} is not from 0 to 1", kName, factor));
  if (given.burnin_steps() > 0)
    fields.not_carried.push_back(fmt::format("{}.burnin_steps: {} steps at a rate of {} come first",
                                             kName, given.burnin_steps(),
                                             given.burnin_learning_rate()));
  if (given.min_learning_rate() > 0)
    fields.not_carried.push_back(
        fmt::format("{}.min_learning_rate: {}", kName, given.min_learning_rate()));
}

void take(const pipeline::CosineRate& given, LearningRateFields& fields) {
  constexpr const char* kName = "cosine_decay_learning_rate";
  fields.rate = rate_of(given.learning_rate_base(), kName, fields);
  const int64_t first = int64_t{given.warmup_steps()} + given.hold_base_rate_steps();
  fields.schedule["cosine"] = {{"decaySteps", std::max<int64_t>(1, given.total_steps() - first)}};
  if (given.warmup_steps() > 0) {
    fields.schedule["warmupSteps"] = given.warmup_steps();
    fields.not_carried.push_back(
        fmt::format("{}.warmup_learning_rate: {}: the first {} steps rise from 0 instead", kName,
                    given.warmup_learning_rate(), given.warmup_steps()));
  }
  if (given.hold_base_rate_steps() > 0)
    fields.not_carried.push_back(
        fmt::format("{}.hold_base_rate_steps: {}", kName, given.hold_base_rate_steps()));
}

// In the API, a new rate begins at `step`; in a TrainingJob, the rate before it ends there.
void take(const pipeline::ManualRate& given, LearningRateFields& fields) {
  constexpr const char* kName = "manual_step_learning_rate";
  fields.rate = rate_of(given.initial_learning_rate(), kName, fields);
  Json boundaries = Json::array(), values = {fields.rate};
  int64_t last = 0;
  for (const auto& step : given.schedule()) {
    if (step.step() <= last) {
      fields.not_carried.push_back(
          fmt::format("{}.schedule: step {} does not come after {}", kName, step.step(), last));
      continue;
    }
    last = step.step();
    boundaries.push_back(last - 1);
    values.push_back(rate_of(step.learning_rate(), kName, fields));
  }
  if (!boundaries.empty() && boundaries[0] < 1) {  // a TrainingJob has no boundary at 0
    boundaries.erase(0);
    values.erase(0);
    fields.rate = values[0];
  }
  if (!boundaries.empty())
    fields.schedule["piecewise"] = {{"boundaries", boundaries}, {"values", values}};
  if (given.warmup())
    fields.not_carried.push_back(std::string(kName) +
                                 ".warmup: the rate does not rise linearly to the first step");
}

}  // namespace

double as_written(float number) {
  return std::strtod(shown(number).c_str(), nullptr);
}

std::string shown(float number) {
  return fmt::format("{}", number);
}

LearningRateFields learning_rate_of(const pipeline::LearningRate& given) {
  LearningRateFields fields;
  if (given.has_exponential_decay_learning_rate()) {
    take(given.exponential_decay_learning_rate(), fields);
  } else if (given.has_cosine_decay_learning_rate()) {
    take(given.cosine_decay_learning_rate(), fields);
  } else if (given.has_manual_step_learning_rate()) {
    take(given.manual_step_learning_rate(), fields);
  } else {
    fields.rate =
        rate_of(given.constant_learning_rate().learning_rate(), "constant_learning_rate", fields);
    if (!given.has_constant_learning_rate())
      fields.not_carried.push_back(
          fmt::format("learning_rate: none is given; {:g} is taken", fields.rate));
  }
  return fields;
}

}  // namespace muster::convert
