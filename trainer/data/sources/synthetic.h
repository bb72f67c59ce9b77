#pragma once

#include "trainer/data/files/selection.h"
#include "trainer/data/sources/stored_dataset.h"

namespace muster::data {

// Both functions depend on (seed, sample index) only: sample i does not depend on skip and take, so
// a training part and a validation part of one source never overlap. They throw Invalid if
// `samples` or `shape` ask for more than 8 GiB, or if skip and take select nothing.

// Makes y = slope x + intercept + noise n, with x and n from a unit normal; one feature, one
// target.
Samples make_linear(const spec::LinearSource& source, const Selection& selection,
                    StorageKind storage);

// Makes `classes` Gaussian blobs: a centre from a unit normal for each class, samples of deviation
// 1 around it; labels are drawn evenly. A share of 1 - density of the features is zero; the others
// are multiples of 1/256 and never zero.
Samples make_classes(const spec::ClassesSource& source, const Selection& selection,
                     StorageKind storage);

}  // namespace muster::data
