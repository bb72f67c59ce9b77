#pragma once

#include "trainer/tables/table.h"

// The library's OpenTable: CSV, Parquet and Arrow's own format.
extern "C" __attribute__((visibility("default"))) muster::tables::Table* muster_open_table(
    const char* path, const muster::tables::ReadOptions& options, muster::tables::ReadError& error);
