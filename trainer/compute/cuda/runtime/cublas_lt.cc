#include "trainer/compute/cuda/runtime/cublas_lt.h"

#include <dlfcn.h>

#include <array>
#include <string>

#include "common/error.h"
#include "trainer/compute/cuda/runtime/check.h"

namespace muster::compute::cuda {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;
constexpr const char* kFile = "libcublasLt.so.13";

void expect_success(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Unavailable(std::string(what) + ": expected success of cuBLASLt, found status " +
                    std::to_string(static_cast<int>(status)));
}

}  // namespace

struct CublasLt::Library {
  Library() : file(dlopen(kFile, RTLD_NOW | RTLD_LOCAL)) {
    if (file == nullptr)
      throw Unavailable(std::string("GPU: expected cuBLASLt as ") + kFile +
                        " in the loader's path, found: " + dlerror());
    find(create, "cublasLtCreate");
    find(destroy, "cublasLtDestroy");
    find(multiply, "cublasLtMatmul");
    find(choose, "cublasLtMatmulAlgoGetHeuristic");
    find(create_description, "cublasLtMatmulDescCreate");
    find(destroy_description, "cublasLtMatmulDescDestroy");
    find(set_description, "cublasLtMatmulDescSetAttribute");
    find(create_layout, "cublasLtMatrixLayoutCreate");
    find(destroy_layout, "cublasLtMatrixLayoutDestroy");
    find(create_preference, "cublasLtMatmulPreferenceCreate");
    find(destroy_preference, "cublasLtMatmulPreferenceDestroy");
    find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
  }
  ~Library() { dlclose(file); }
  Library(const Library&) = delete;

  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(file, name));
    if (function == nullptr)
      throw Unavailable(std::string("GPU: expected the function ") + name + " in " + kFile +
                        ", found none");
  }

  void* file;
  decltype(cublasLtCreate)* create = nullptr;
  decltype(cublasLtDestroy)* destroy = nullptr;
  decltype(cublasLtMatmul)* multiply = nullptr;
  decltype(cublasLtMatmulAlgoGetHeuristic)* choose = nullptr;
  decltype(cublasLtMatmulDescCreate)* create_description = nullptr;
  decltype(cublasLtMatmulDescDestroy)* destroy_description = nullptr;
  decltype(cublasLtMatmulDescSetAttribute)* set_description = nullptr;
  decltype(cublasLtMatrixLayoutCreate)* create_layout = nullptr;
  decltype(cublasLtMatrixLayoutDestroy)* destroy_layout = nullptr;
  decltype(cublasLtMatmulPreferenceCreate)* create_preference = nullptr;
  decltype(cublasLtMatmulPreferenceDestroy)* destroy_preference = nullptr;
  decltype(cublasLtMatmulPreferenceSetAttribute)* set_preference = nullptr;
};

// A row-major matrix is a column-major one of its transpose, and c' = b' a': so b comes first.
struct CublasLt::Plan {
  Plan(const Library& library, cublasLtHandle_t handle, const MatrixProduct& product)
      : library(library), shape(product) {
    expect_success(library.create_description(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                   "cublasLtMatmulDescCreate");
    set_operation(CUBLASLT_MATMUL_DESC_TRANSA, product.b_transposed);
    set_operation(CUBLASLT_MATMUL_DESC_TRANSB, product.a_transposed);
    const auto n = static_cast<uint64_t>(product.n), k = static_cast<uint64_t>(product.k),
               m = static_cast<uint64_t>(product.m);
    layout(b, product.b_transposed ? k : n, product.b_transposed ? n : k, product.ldb);
    layout(a, product.a_transposed ? m : k, product.a_transposed ? k : m, product.lda);
    layout(c, n, m, product.ldc);
    cublasLtMatmulPreference_t preference = nullptr;
    expect_success(library.create_preference(&preference), "cublasLtMatmulPreferenceCreate");
    library.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                           sizeof kWorkspace);
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status =
        library.choose(handle, description, b, a, c, c, preference, 1, &result, &found);
    library.destroy_preference(preference);
    expect_success(found > 0 ? status : CUBLAS_STATUS_NOT_SUPPORTED,
                   "cublasLtMatmulAlgoGetHeuristic");
    algorithm = result.algo;
  }
  ~Plan() {
    for (cublasLtMatrixLayout_t one : {a, b, c})
      if (one != nullptr) library.destroy_layout(one);
    if (description != nullptr) library.destroy_description(description);
  }
  Plan(const Plan&) = delete;

  bool fits(const MatrixProduct& p) const {
    const auto key = [](const MatrixProduct& q) {
      return std::array<int64_t, 9>{
          q.m, q.n, q.k, q.lda, q.ldb, q.ldc, q.accumulate, q.a_transposed, q.b_transposed};
    };
    return key(p) == key(shape);
  }

  void set_operation(cublasLtMatmulDescAttributes_t which, bool transposed) {
    const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    expect_success(library.set_description(description, which, &operation, sizeof operation),
                   "cublasLtMatmulDescSetAttribute");
  }
  void layout(cublasLtMatrixLayout_t& to, uint64_t rows, uint64_t columns, int64_t ld) {
    expect_success(library.create_layout(&to, CUDA_R_32F, rows, columns, ld),
                   "cublasLtMatrixLayoutCreate");
  }

  const Library& library;
  const MatrixProduct shape;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

CublasLt::CublasLt() : library_(std::make_unique<Library>()) {
  expect_success(library_->create(&handle_), "cublasLtCreate");
  check(cudaMalloc(&workspace_, kWorkspace), "cudaMalloc of cuBLASLt's workspace");
}

CublasLt::~CublasLt() {
  plans_.clear();
  cudaFree(workspace_);
  library_->destroy(handle_);
}

CublasLt::Plan& CublasLt::plan_of(const MatrixProduct& product) {
  for (Plan& plan : plans_)
    if (plan.fits(product)) return plan;
  return plans_.emplace_back(*library_, handle_, product);
}

void CublasLt::multiply(const MatrixProduct& product, cudaStream_t stream) {
  const Plan& plan = plan_of(product);
  const float one = 1.0f, kept = product.accumulate ? 1.0f : 0.0f;
  expect_success(library_->multiply(handle_, plan.description, &one, product.b, plan.b, product.a,
                                    plan.a, &kept, product.c, plan.c, product.c, plan.c,
                                    &plan.algorithm, workspace_, kWorkspace, stream),
                 "cublasLtMatmul");
}

}  // namespace muster::compute::cuda
