#pragma once

#include "trainer/spec/check.h"

namespace muster::spec {

// A model of the catalogue may leave its number of classes to the training data: it then has as
// many as there are folders, entries of a label map or categories, or as the largest label says.

// The words for the missing field of an error, if the data do not say the number either.
inline constexpr const char* kExpectedClasses =
    "a number of classes, since data.train does not say how many there are";

// Whether this value of `model` leaves the number open.
bool leaves_classes_open(const Json& model);

// Fills in `model.classes` of a training block that leaves it open. Leaves the block as it is if
// the training data are not here or do not say the number. Precondition: no problems in the block.
void fill_in_classes(Json& training, const LookUp& look_up);

}  // namespace muster::spec
