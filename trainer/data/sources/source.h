#pragma once

#include <memory>

#include "trainer/data/order/shards.h"
#include "trainer/data/sources/dataset.h"
#include "trainer/spec/data_source.h"

namespace muster::data {

// Reads the samples of a source that skip, take and split leave. IDX may be plain or gzip, told
// apart by the first bytes, and is kept as unsigned bytes; synthetic data are generated once and
// kept as float32. So these are decoded once in each process. With `cache` they lie in its memory;
// without, in an unlinked temporary file that is mapped, whose pages the system may drop when
// memory is short. JPEG and PNG are kept as they are, in memory or without `cache` in their files,
// and decoded for each use. IDX labels may be absent (an empty path), for prediction. Throws
// Invalid naming file and byte if something is missing, truncated, mislabelled or out of range.
std::unique_ptr<Dataset> open_dataset(const spec::DataSource& source);

struct TrainingData {
  std::unique_ptr<Dataset> samples;
  Shards shards;  // of which `samples` has the held ones
};

// Opens the samples that these replicas train on, as the source's `shard` says: by record, all
// samples; by file, those of the replicas' own files. By file, each of all replicas must have a
// file with samples left by skip, take and split. Of the other replicas' files only headers and
// labels are read. Throws Invalid also where samples have objects, are shared out by record, and no
// sample is known to have one.
TrainingData open_training_data(const spec::DataSource& source, const Replicas& replicas,
                                const BatchRule& rule);

}  // namespace muster::data
