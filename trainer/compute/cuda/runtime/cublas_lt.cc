#include "trainer/compute/cuda/runtime/cublas_lt.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "common/error.h"
#include "common/system/shared_library.h"
#include "trainer/compute/cuda/runtime/check.h"

namespace muster::compute::cuda {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;

void expect_success(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  check(cudaPeekAtLastError(), what);  // an error of the GPU is reported as a GPU error
  throw Unavailable(std::string(what) + ": expected success of cuBLASLt, found status " +
                    std::to_string(static_cast<int>(status)));
}

}  // namespace

struct CublasLt::Library {
  Library() {
    file.find(create, "cublasLtCreate");
    file.find(destroy, "cublasLtDestroy");
    file.find(multiply, "cublasLtMatmul");
    file.find(choose, "cublasLtMatmulAlgoGetHeuristic");
    file.find(create_description, "cublasLtMatmulDescCreate");
    file.find(destroy_description, "cublasLtMatmulDescDestroy");
    file.find(set_description, "cublasLtMatmulDescSetAttribute");
    file.find(create_layout, "cublasLtMatrixLayoutCreate");
    file.find(destroy_layout, "cublasLtMatrixLayoutDestroy");
    file.find(create_preference, "cublasLtMatmulPreferenceCreate");
    file.find(destroy_preference, "cublasLtMatmulPreferenceDestroy");
    file.find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
  }
  const SharedLibrary file{"GPU", "cuBLASLt", "libcublasLt.so.13"};
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
      : library(library), key(key_of(product)) {
    expect_success(library.create_description(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                   "cublasLtMatmulDescCreate");
    set_operation(CUBLASLT_MATMUL_DESC_TRANSA, product.b_transposed);
    set_operation(CUBLASLT_MATMUL_DESC_TRANSB, product.a_transposed);
    const auto n = static_cast<uint64_t>(product.n), k = static_cast<uint64_t>(product.k),
               m = static_cast<uint64_t>(product.m);
    layout(b, product.b, product.b_transposed ? k : n, product.b_transposed ? n : k, product.ldb);
    layout(a, product.a, product.a_transposed ? m : k, product.a_transposed ? k : m, product.lda);
    layout(c, product.c, n, m, product.ldc);
    cublasLtMatmulPreference_t preference = nullptr;
    expect_success(library.create_preference(&preference), "cublasLtMatmulPreferenceCreate");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      expect_success(library.set_preference(preference, attribute, &value, sizeof value),
                     "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    // Parts of a sum are added up in float32, whatever the format of the result.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    const std::pair<cublasLtMatmulPreferenceAttributes_t, Numbers> alignments[] = {
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.b},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.a},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.c},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.c}};
    for (const auto& [attribute, numbers] : alignments) prefer(attribute, alignment_of(numbers));
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

  // Everything that the choice of an algorithm depends on.
  using Key = std::array<int64_t, 14>;
  static Key key_of(const MatrixProduct& p) {
    return {p.m,
            p.n,
            p.k,
            p.lda,
            p.ldb,
            p.ldc,
            p.accumulate,
            p.a_transposed,
            p.b_transposed,
            p.a.half(),
            p.c.half(),
            alignment_of(p.a),
            alignment_of(p.b),
            alignment_of(p.c)};
  }
  // Returns the largest power of two, at most 256, that divides the address.
  static uint32_t alignment_of(const Numbers& numbers) {
    const auto address = reinterpret_cast<uintptr_t>(numbers.data()) | 256;
    return static_cast<uint32_t>(address & -address);
  }

  void set_operation(cublasLtMatmulDescAttributes_t which, bool transposed) {
    const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    expect_success(library.set_description(description, which, &operation, sizeof operation),
                   "cublasLtMatmulDescSetAttribute");
  }
  void layout(cublasLtMatrixLayout_t& to, const Numbers& numbers, uint64_t rows, uint64_t columns,
              int64_t ld) {
    const cudaDataType_t type = numbers.half() ? CUDA_R_16BF : CUDA_R_32F;
    expect_success(library.create_layout(&to, type, rows, columns, ld),
                   "cublasLtMatrixLayoutCreate");
  }

  const Library& library;
  const Key key;
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
  const Plan::Key key = Plan::key_of(product);
  for (Plan& plan : plans_)
    if (plan.key == key) return plan;
  return plans_.emplace_back(*library_, handle_, product);
}

void CublasLt::multiply(const MatrixProduct& product, cudaStream_t stream) {
  const Plan& plan = plan_of(product);
  const float one = 1.0f, kept = product.accumulate ? 1.0f : 0.0f;
  expect_success(
      library_->multiply(handle_, plan.description, &one, product.b.data(), plan.b,
                         product.a.data(), plan.a, &kept, product.c.data(), plan.c,
                         product.c.data(), plan.c, &plan.algorithm, workspace_, kWorkspace, stream),
      "cublasLtMatmul");
}

}  // namespace muster::compute::cuda
