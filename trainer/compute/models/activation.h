#pragma once

namespace muster::compute {

enum class Activation { linear, relu, sigmoid, softmax, relu6 };

// What turns the outputs that a loss takes into predictions.
enum class OutputFunction { none, softmax, sigmoid, exponential };

}  // namespace muster::compute
