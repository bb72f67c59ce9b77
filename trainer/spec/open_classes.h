#pragma once

#include "trainer/spec/check.h"

namespace muster::spec {

// A model of the catalogue may leave its number of classes to the training data: the number is then
// that of folders, of entries of a label map or of categories, or follows from the largest label.

// The words of the error for the missing field, if the data do not tell the number either.
inline constexpr const char* kExpectedClasses =
    "a number of classes, since data.train does not say how many there are";

// Whether this value of `model` leaves the number of classes open.
bool leaves_classes_open(const Json& model);

// Fills in `model.classes` of a training block that leaves it open. Does not change the block if
// the training data are not on this machine or do not tell the number. Precondition: no problems in
// the block.
void fill_in_classes(Json& training, const LookUp& look_up);

}  // namespace muster::spec
