#pragma once

namespace muster::compute {

enum class Activation { linear, relu, sigmoid, softmax, relu6 };

}  // namespace muster::compute
