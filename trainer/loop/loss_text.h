#pragma once

#include <string>

namespace muster::loop {

// A loss for people: "0.1234", "inf", or "nan", whatever that one's sign bit.
std::string loss_text(double loss);

}  // namespace muster::loop
