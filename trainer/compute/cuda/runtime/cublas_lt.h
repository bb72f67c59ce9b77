#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <list>
#include <memory>

#include "trainer/compute/cuda/gpu.h"

namespace muster::compute::cuda {

// Products of matrices by cuBLASLt. The library is opened when the first object is made, so that
// the trainer runs on machines without it.
class CublasLt {
 public:
  // Throws Unavailable if the library cannot be opened.
  CublasLt();
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;

  // Asks a stream for a product. The algorithm is chosen once for each shape; the same algorithm
  // gives the same bits each time.
  void multiply(const MatrixProduct& product, cudaStream_t stream);

 private:
  struct Library;
  struct Plan;
  Plan& plan_of(const MatrixProduct& product);

  const std::unique_ptr<const Library> library_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::list<Plan> plans_;
};

}  // namespace muster::compute::cuda
