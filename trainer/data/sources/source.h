#pragma once

#include <memory>

#include "trainer/data/order/shards.h"
#include "trainer/data/sources/dataset.h"
#include "trainer/spec/data_source.h"

namespace muster::data {

// Reads the samples of a source that skip, take and split select. IDX may be plain or gzip (the
// first bytes tell which), and is kept as unsigned bytes; synthetic data are generated once and
// kept as float32. These data are decoded once in each process. With `cache` they are in memory;
// without it, in an unlinked, mapped temporary file, whose pages the system may drop when memory is
// short. JPEG and PNG stay encoded, in memory or (without `cache`) in their files, and are decoded
// for each use. IDX labels may be absent (an empty path), for prediction. Throws Invalid naming
// file and byte if something is missing, truncated, mislabelled or out of range.
std::unique_ptr<Dataset> open_dataset(const spec::DataSource& source);

struct TrainingData {
  std::unique_ptr<Dataset> samples;
  Shards shards;  // `samples` has the held shards
};

// Opens the samples that these replicas train on, by the source's `shard`: by record, all samples;
// by file, the samples of the replicas' own files. By file, each of all replicas must have a file
// with selected samples (skip, take, split). Of the other replicas' files only headers and labels
// are read. Also throws Invalid if samples have objects, are divided by record, and no sample is
// known to have an object.
TrainingData open_training_data(const spec::DataSource& source, const Replicas& replicas,
                                const BatchRule& rule);

}  // namespace muster::data
