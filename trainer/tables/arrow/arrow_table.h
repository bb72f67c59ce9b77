#pragma once

#include "trainer/tables/table.h"

// The library's functions, see table.h. Files may be CSV, Parquet and Arrow's own format.
extern "C" __attribute__((visibility("default"))) muster::tables::Table* muster_open_table(
    const char* path, const muster::tables::ReadOptions& options, muster::tables::ReadError& error);
extern "C" __attribute__((visibility("default"))) std::string muster_write_parquet(
    const char* path, const std::vector<muster::tables::WrittenColumn>& columns);
