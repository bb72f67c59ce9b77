#include "trainer/loop/roles/unconverged.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/program/log.h"

namespace muster::loop {

namespace {

constexpr double kMostInitial = 0.1;  // largest share of the first value in a converged average

// A moving average that begins at a fixed value keeps a share of decay^steps of that value. A decay
// of 0 means no average.
bool has_converged(double decay, double steps) {
  return decay == 0 || std::pow(decay, steps) <= kMostInitial;
}

std::string text_of(const char* averages, const char* name, double decay, double steps) {
  std::string text = fmt::format(
      "{}: after {:.0f} steps with a {} of {:.4g} they are still {:.0f} % what they began with, so "
      "evaluation and prediction are wrong: expected ",
      averages, steps, name, decay, 100 * std::pow(decay, steps));
  if (steps > 0)
    text += fmt::format("a {} of at most {:.4g}, or ", name, std::pow(kMostInitial, 1 / steps));
  return text + "more steps";
}

// Returns 0 if there are no statistics that follow the training.
double slowest_statistics(const compute::ParameterLayout& layout) {
  float momentum = 0;
  for (const compute::ParameterTensor& tensor : layout.tensors())
    if (tensor.segment == compute::Segment::state)
      momentum = std::max(momentum, tensor.state_momentum);
  return static_cast<double>(momentum);
}

}  // namespace

std::vector<std::string> unconverged_averages(const spec::TrainingSpec& spec,
                                              const compute::ParameterLayout& layout,
                                              uint64_t steps) {
  const auto count = static_cast<double>(steps);
  std::vector<std::string> texts;
  const double momentum = spec.initialize_from.empty() ? slowest_statistics(layout) : 0;
  if (!has_converged(momentum, count))
    texts.push_back(
        text_of("moving means and variances of batch normalization", "momentum", momentum, count));
  const double decay = spec.optimizer.average.value_or(0);
  if (!has_converged(decay, count))
    texts.push_back(
        text_of("moving averages of the weights (optimizer.ema)", "decay", decay, count));
  return texts;
}

void warn_of_unconverged_averages(const spec::TrainingSpec& spec,
                                  const compute::ParameterLayout& layout, uint64_t steps) {
  for (const std::string& text : unconverged_averages(spec, layout, steps)) log::warning(text);
}

}  // namespace muster::loop
