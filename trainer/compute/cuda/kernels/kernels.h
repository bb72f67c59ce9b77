#pragma once

#include <cstddef>
#include <type_traits>

#include "trainer/compute/cuda/kernels/activation.h"
#include "trainer/compute/cuda/kernels/anchor_losses.h"
#include "trainer/compute/cuda/kernels/column_sums.h"
#include "trainer/compute/cuda/kernels/copy.h"
#include "trainer/compute/cuda/kernels/dense.h"
#include "trainer/compute/cuda/kernels/depthwise.h"
#include "trainer/compute/cuda/kernels/dropout.h"
#include "trainer/compute/cuda/kernels/losses.h"
#include "trainer/compute/cuda/kernels/match_anchors.h"
#include "trainer/compute/cuda/kernels/mine_anchors.h"
#include "trainer/compute/cuda/kernels/normalized.h"
#include "trainer/compute/cuda/kernels/round_matrices.h"
#include "trainer/compute/cuda/kernels/softmax.h"
#include "trainer/compute/cuda/kernels/sum_tree.h"
#include "trainer/compute/cuda/kernels/update.h"
#include "trainer/compute/cuda/kernels/windows.h"

namespace muster::compute::cuda {

template <class... Kernel>
struct Kernels {};

// The list of all kernels. A new kernel gets a line here.
using KernelList =
    Kernels<Fetch, ConvertBytes, ConvertFloats, Copy, RoundMatrices, BiasActivation,
            ActivationGradient, DenseForward, DenseBackward, DropElements, ColumnSums, SumParts,
            Softmax, SoftmaxGradient, SoftmaxCrossEntropyRows, SquaredErrorRows, TargetRows<Huber>,
            TargetRows<BinaryCrossEntropy>, TargetRows<Poisson>, TargetRows<Quantile>,
            UpdateTensors, MeasureTensors, SumTree, GatherPatches, ScatterPatches, Depthwise,
            DepthwiseInputGradient, DepthwiseWeightParts, Pool, PoolGradient, MatchAnchors,
            AnchorLosses, RankAnchors, MineAnchors, AnchorGradients, ReadValues, ReadRows,
            PartStatistics, JoinStatistics, FixedScales, PartGradients, JoinGradients,
            NormalizedGradient>;

// Returns the place of a kernel in a list.
template <class Kernel, class... Some>
constexpr size_t place_of(Kernels<Some...>) {
  static_assert((std::is_same_v<Kernel, Some> || ...), "the kernel has no line in KernelList");
  size_t place = 0;
  const bool found = ((std::is_same_v<Kernel, Some> || (++place, false)) || ...);
  return found ? place : sizeof...(Some);
}

}  // namespace muster::compute::cuda
