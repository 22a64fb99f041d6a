// Dense algebra of the gw kernels: inverses and eigenvectors satisfy the equations that define
// them, on every device.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>

#include "tests/gw/kernels/gw_kernels_on_device.hpp"
#include "tests/gw/kernels/random_problem.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/dense/eigen_memory.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using test::GwKernelsOnDevice;

/// Random Hermitian n × n matrix whose diagonal is shifted by `shift`.
std::vector<Cplx> random_hermitian(std::int64_t n, double shift, std::uint32_t seed) {
  auto matrix = test::random_complex(n * n, seed);
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h <= g; ++h)
      matrix[g * n + h] =
          g == h ? Cplx(matrix[g * n + h].real() + shift) : std::conj(matrix[h * n + g]);
  return matrix;
}

/// Largest |A·B − 1| over all elements of n × n matrices.
double distance_from_one(const std::vector<Cplx>& a, const std::vector<Cplx>& b, std::int64_t n) {
  double worst = 0.0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      Cplx sum = i == j ? -1.0 : 0.0;
      for (std::int64_t k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      worst = std::max(worst, std::abs(sum));
    }
  return worst;
}

/// Product of an n × n matrix and a vector.
std::vector<Cplx> product(const std::vector<Cplx>& matrix, const std::vector<Cplx>& vector,
                          std::int64_t n) {
  std::vector<Cplx> found(n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) found[i] += matrix[i * n + j] * vector[j];
  return found;
}

// A matrix times its computed inverse is the unit matrix. The general matrix has a condition number
// of order 1e3, hence its wider tolerance.
TEST_P(GwKernelsOnDevice, InvertsMatrices) {
  const std::int64_t n = 61;
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto definite = random_hermitian(n, 40.0, 91);
  auto inverse = definite;
  kernels->dense().invert_positive_definite({inverse.data(), {n, n}});
  EXPECT_LE(distance_from_one(definite, inverse, n), 1e-12);
  const auto general = test::random_complex(n * n, 92);
  inverse = general;
  kernels->dense().invert_general({inverse.data(), {n, n}});
  EXPECT_LE(distance_from_one(general, inverse, n), 1e-10);
}

// A matrix of more than one block times its inverse leaves random vectors as they are. Its
// condition number is below 10, so that rounding stays far below the tolerance. The CPU does not
// use blocks; it inverts a small matrix.
TEST_P(GwKernelsOnDevice, InvertsMatricesOfSeveralBlocks) {
  const std::int64_t n = GetParam().backend == Backend::kCpu ? 300 : 9'000;
  const auto kernels = gw::make_gw_kernels(GetParam());
  for (const bool real : {true, false}) {
    auto matrix = random_hermitian(n, 4.0 * std::sqrt(static_cast<double>(n)), 95);
    if (real)
      for (Cplx& element : matrix) element = element.real();
    auto inverse = matrix;
    kernels->dense().invert_positive_definite({inverse.data(), {n, n}});
    const auto vector = test::random_complex(n, 96);
    const auto restored = product(inverse, product(matrix, vector, n), n);
    double worst = 0.0;
    for (std::int64_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(restored[i] - vector[i]));
    EXPECT_LE(worst, 1e-11) << (real ? "real" : "complex");
  }
}

// The first minor that is not positive is counted through all blocks.
TEST_P(GwKernelsOnDevice, NamesAMinorOfALaterBlock) {
  const std::int64_t n = GetParam().backend == Backend::kCpu ? 300 : 5'000, minor = n - 17;
  auto matrix = random_hermitian(n, 4.0 * std::sqrt(static_cast<double>(n)), 97);
  matrix[(minor - 1) * n + minor - 1] = -1.0;
  const auto kernels = gw::make_gw_kernels(GetParam());
  try {
    kernels->dense().invert_positive_definite({matrix.data(), {n, n}});
    FAIL() << "not refused";
  } catch (const NotConverged& failure) {
    EXPECT_NE(std::string(failure.what()).find(std::to_string(minor)), std::string::npos)
        << failure.what();
  }
}

// The Cholesky factorization fails at the eighth leading minor, and the error names that number.
TEST_P(GwKernelsOnDevice, NamesTheMinorOfAMatrixThatIsNotPositiveDefinite) {
  auto matrix = random_hermitian(12, 20.0, 93);
  matrix[7 * 12 + 7] = -1.0;
  const auto kernels = gw::make_gw_kernels(GetParam());
  try {
    kernels->dense().invert_positive_definite({matrix.data(), {12, 12}});
    FAIL() << "not refused";
  } catch (const NotConverged& failure) {
    EXPECT_NE(std::string(failure.what()).find("8"), std::string::npos) << failure.what();
  }
}

// The lowest eigenpairs come in ascending order, and A·v − λ·v vanishes to rounding.
TEST_P(GwKernelsOnDevice, EigenvectorsSolveTheirEquation) {
  const std::int64_t n = 57, n_lowest = 20;
  const auto matrix = random_hermitian(n, 0.0, 94);
  std::vector<double> values(n_lowest);
  std::vector<Cplx> vectors(n_lowest * n);
  const auto kernels = gw::make_gw_kernels(GetParam());
  kernels->dense().eigen_hermitian({matrix.data(), {n, n}}, {values.data(), {n_lowest}},
                                   {vectors.data(), {n_lowest, n}});
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  for (std::int64_t i = 0; i < n_lowest; ++i)
    for (std::int64_t g = 0; g < n; ++g) {
      Cplx residual = -values[i] * vectors[i * n + g];
      for (std::int64_t h = 0; h < n; ++h) residual += matrix[g * n + h] * vectors[i * n + h];
      EXPECT_LE(std::abs(residual), 1e-12 * static_cast<double>(n));
    }
}

// Real parts go to a GPU in pieces of four million numbers; an order of 2,100 has two of them. The
// eigenvectors of a real matrix are real and orthonormal, and solve their equation to rounding.
TEST_P(GwKernelsOnDevice, EigenvectorsOfARealMatrixAreReal) {
  const std::int64_t n = GetParam().backend == Backend::kCpu ? 60 : 2'100;
  auto matrix = random_hermitian(n, 0.0, 98);
  for (Cplx& element : matrix) element = element.real();
  std::vector<double> values(static_cast<std::size_t>(n));
  std::vector<Cplx> vectors(static_cast<std::size_t>(n * n), {7.0, 7.0});
  const auto kernels = gw::make_gw_kernels(GetParam());
  kernels->dense().eigen_hermitian({matrix.data(), {n, n}}, {values.data(), {n}},
                                   {vectors.data(), {n, n}});
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  EXPECT_TRUE(
      std::all_of(vectors.begin(), vectors.end(), [](const Cplx& c) { return c.imag() == 0.0; }));
  double worst = 0.0;
  for (const std::int64_t i : {std::int64_t{0}, n / 2, n - 2, n - 1}) {
    const std::vector<Cplx> vector(vectors.begin() + i * n, vectors.begin() + (i + 1) * n);
    const auto image = product(matrix, vector, n);
    double norm = 0.0;
    for (std::int64_t g = 0; g < n; ++g) {
      worst = std::max(worst, std::abs(image[g] - values[i] * vector[g]));
      norm += std::norm(vector[g]);
    }
    EXPECT_NEAR(norm, 1.0, 1e-12);
  }
  EXPECT_LE(worst, 1e-12 * static_cast<double>(n));
}

// A GPU needs the matrix and more than its size of work space for eigenvectors; complex numbers
// take no less than real ones. LAPACK says what it takes when it is asked for it.
TEST_P(GwKernelsOnDevice, MemoryOfADiagonalisation) {
  const std::int64_t n = 500;
  const gw::CallMemory real = gw::memory_of_eigen_hermitian(GetParam(), n, true),
                       complex = gw::memory_of_eigen_hermitian(GetParam(), n, false);
  if (GetParam().backend == Backend::kCuda) {
    EXPECT_GT(real.device_bytes, 16 * n * n);
    EXPECT_LT(real.device_bytes, 80 * n * n);
    EXPECT_GT(complex.device_bytes, real.device_bytes);
    return;
  }
  double value = 0.0, work = 0.0, real_work = 0.0;
  Cplx number, complex_work;
  lapack_int integers = 0;
  const auto order = static_cast<lapack_int>(n);
  ASSERT_EQ(LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'L', order, &value, order, &value, &work, -1,
                                &integers, -1),
            0);
  EXPECT_EQ(real.device_bytes, 0);
  EXPECT_NEAR(static_cast<double>(real.host_bytes),
              8.0 * (500.0 * 500.0 + 500.0) + 8.0 * work + 4.0 * integers,
              0.01 * static_cast<double>(real.host_bytes));
  ASSERT_EQ(LAPACKE_zheevd_work(LAPACK_COL_MAJOR, 'V', 'L', order,
                                reinterpret_cast<lapack_complex_double*>(&number), order, &value,
                                reinterpret_cast<lapack_complex_double*>(&complex_work), -1,
                                &real_work, -1, &integers, -1),
            0);
  EXPECT_NEAR(static_cast<double>(complex.host_bytes),
              16.0 * 500.0 * 500.0 + 8.0 * 500.0 + 16.0 * complex_work.real() + 8.0 * real_work +
                  4.0 * integers,
              0.01 * static_cast<double>(complex.host_bytes));
}

}  // namespace
