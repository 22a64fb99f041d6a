#pragma once

#include <cstdint>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"
#include "workers/thermal/physics/matrix_element.hpp"

/// Sums of self-consistent phonons (docs/theory/thermal.md 14), one element or block for each
/// index. Each index is written by one thread and summed in a fixed order, so bits do not depend on
/// threads.
namespace quasi::thermal {

/// Points of a mesh and e^{iqR}.
struct MeshWaves {
  const int* point;  ///< [n_points][3]
  PhaseTable phase;

  QUASI_HD Complex<double> operator()(std::int64_t number, const int* cell) const {
    return phase(point + 3 * number, cell);
  }
};

/// Computes conj(D(q)) with D = D_bare + Σ_R Φ_κκ'(R)/√(mm') e^{iqR}. A row-major array of
/// the conjugate is the matrix D itself in column-major order, because D is Hermitian. The index is
/// (point·n_atoms + κ)·n_atoms + κ'.
struct CorrectMatrices {
  MeshWaves waves;
  int n_atoms;
  const Complex<double>* bare;  ///< [n_points][nb][nb]
  const int* first_pair;        ///< [n_atoms² + 1]
  const int* pair_cell;         ///< [n_pairs][3]
  const double* pair_scale;     ///< [n_atoms²]
  const double* correction;     ///< [n_pairs][9] eV/Å²
  Complex<double>* matrix;      ///< [n_points][nb][nb]

  QUASI_HD void operator()(std::int64_t index) const {
    const int atoms = static_cast<int>(index % (n_atoms * n_atoms));
    const std::int64_t point = index / (n_atoms * n_atoms);
    const int nb = 3 * n_atoms;
    const std::int64_t first = (point * nb + 3 * (atoms / n_atoms)) * nb + 3 * (atoms % n_atoms);
    Complex<double> sum[9];
    for (int e = 0; e < 9; ++e) sum[e] = bare[first + e / 3 * nb + e % 3];
    for (int pair = first_pair[atoms]; pair < first_pair[atoms + 1]; ++pair) {
      const Complex<double> wave = pair_scale[atoms] * waves(point, pair_cell + 3 * pair);
      for (int e = 0; e < 9; ++e) sum[e] += correction[9 * pair + e] * wave;
    }
    for (int e = 0; e < 9; ++e) matrix[first + e / 3 * nb + e % 3] = conj(sum[e]);
  }
};

/// Computes Σ_s A_s e e† of a point. The index is (point·nb + row)·nb + column.
struct SumDisplacements {
  int nb;
  const Complex<double>* vectors;  ///< [n_points][branch][3κ+α]
  const double* amplitude;         ///< [n_points][branch] Å² amu
  Complex<double>* displacement;   ///< [n_points][nb][nb] Å² amu

  QUASI_HD void operator()(std::int64_t index) const {
    const std::int64_t column = index % nb;
    const std::int64_t row = index / nb % nb;
    const std::int64_t first = index / nb / nb * nb;  // branch 0 of the point
    Complex<double> sum;
    for (std::int64_t mode = first; mode < first + nb; ++mode)
      sum += amplitude[mode] * vectors[mode * nb + row] * conj(vectors[mode * nb + column]);
    displacement[index] = sum;
  }
};

/// Sums ⟨u_κα(R) u_κ'β(0)⟩ over a chunk of the points. The index is correlation·chunks +
/// chunk.
struct SumCorrelations {
  MeshWaves waves;
  int nb;
  std::int64_t n_points;
  int chunks;
  const double* weight;                 ///< [n_points]
  const Complex<double>* displacement;  ///< [n_points][nb][nb] Å² amu
  const int* atom;                      ///< [n_correlations][2]
  const int* cell;                      ///< [n_correlations][3]
  const double* scale;                  ///< [n_correlations] 1/amu
  double* sums;                         ///< [n_correlations][chunks][9] Å²

  QUASI_HD void operator()(std::int64_t index) const {
    const std::int64_t chunk = index % chunks;
    const std::int64_t correlation = index / chunks;
    const int row = 3 * atom[2 * correlation];
    const int column = 3 * atom[2 * correlation + 1];
    double sum[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    for (std::int64_t point = n_points * chunk / chunks; point < n_points * (chunk + 1) / chunks;
         ++point) {
      const Complex<double> wave = weight[point] * waves(point, cell + 3 * correlation);
      const Complex<double>* from = displacement + (point * nb + row) * nb + column;
      for (int e = 0; e < 9; ++e) {
        const Complex<double> d = from[e / 3 * nb + e % 3];
        sum[e] += d.re * wave.re - d.im * wave.im;
      }
    }
    for (int e = 0; e < 9; ++e) sums[9 * index + e] = scale[correlation] * sum[e];
  }
};

/// Sums ½ Σ Φ₄ ⟨uu⟩ over a chunk of the blocks of a pair. The index is
/// (9·pair + element)·chunks + chunk.
struct ContractFourthOrder {
  int chunks;
  const std::int64_t* first_block;  ///< [n_pairs + 1]
  const std::int64_t* block;        ///< [n_blocks]
  const int* block_correlation;     ///< [n_blocks]
  const double* tensor;             ///< [n_blocks][81] eV/Å⁴
  const double* correlation;        ///< [n_correlations][9] Å²
  double* sums;                     ///< [n_pairs][9][chunks] eV/Å²

  QUASI_HD void operator()(std::int64_t index) const {
    const std::int64_t chunk = index % chunks;
    const std::int64_t element = index / chunks % 9;
    const std::int64_t pair = index / chunks / 9;
    const std::int64_t begin = first_block[pair];
    const std::int64_t n = first_block[pair + 1] - begin;
    double sum = 0.0;
    for (std::int64_t at = begin + n * chunk / chunks; at < begin + n * (chunk + 1) / chunks;
         ++at) {
      const double* phi = tensor + 81 * block[at] + 9 * element;
      const double* uu = correlation + 9 * static_cast<std::int64_t>(block_correlation[at]);
      for (int e = 0; e < 9; ++e) sum += 0.5 * phi[e] * uu[e];
    }
    sums[index] = sum;
  }
};

}  // namespace quasi::thermal
