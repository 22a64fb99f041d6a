#pragma once

#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/physics/chord.hpp"
#include "workers/mosfet/physics/tridiagonal.hpp"
#include "workers/mosfet/physics/working_units.hpp"

/// Kernels that renew the frozen Newton matrix: all states of every column, their density response
/// and the assembly (docs/theory/mosfet.md 9.2).
namespace quasi::mosfet::cuda {

constexpr int kLargestInterior = 511;

/// Computes every eigenpair of every (family, column), one thread for each pair, with workspace in
/// local memory. energies [n_families][nx][interior], vectors [n_families][nx][interior][interior].
template <int kMaxInterior>
__global__ void all_states_kernel(DeviceProblem p, const double* potential, double* energies,
                                  double* vectors) {
  const int pair = blockIdx.x * blockDim.x + threadIdx.x;
  const int n = p.interior;
  if (pair >= p.n_families * p.nx * n) return;
  const int level = pair % n, i = pair / n % p.nx, family = pair / n / p.nx;
  double diagonal[kMaxInterior], psi[kMaxInterior], forward[kMaxInterior], backward[kMaxInterior];
  const double* off = p.off + family * n;
  for (int k = 0; k < n; ++k) diagonal[k] = p.base[family * n + k] - potential[i * p.nz + k + 1];
  const Tridiagonal t{diagonal, off, n, gershgorin_bound(diagonal, off, n)};
  double energy = bisect_level(t, level);
  const double norm2 = twisted_rayleigh(t, &energy, psi, forward, backward);
  const double factor = 1.0 / sqrt(p.dz * (norm2 > 0.0 ? norm2 : 1.0));
  energies[pair] = energy;
  // The products of a vector that did not converge are left out.
  for (int k = 0; k < n; ++k)
    vectors[static_cast<long long>(pair) * n + k] = norm2 > 0.0 ? factor * psi[k] : 0.0;
}

/// Computes the products ψ_pψ_q of all pairs (transported p, any q) of a column, and the products
/// times their weight 4(ϱ_p−ϱ_q)/(ε_q−ε_p), capped and clipped at zero. Both have the shape
/// [nx][rank][interior], rank = n_families·subbands·interior.
__global__ void pair_products_kernel(DeviceProblem p, DevicePoint q, const double* energies,
                                     const double* vectors, double* products, double* weighted) {
  const int n = p.interior, rank = p.n_levels * n;
  const int r = blockIdx.x, i = blockIdx.y;
  const int family = r / (p.subbands * n), b = r / n % p.subbands, other = r % n;
  const auto sheet_of = [&](int band) {
    double sum = 0.0;
    for (int v = 0; v < p.n_valleys; ++v)
      if (p.family_of[v] == family) sum += q.sheet[(v * p.subbands + band) * p.nx + i];
    return sum;
  };
  double largest = 0.0;
  for (int state = 0; state < p.n_states; ++state)
    largest = fmax(largest, q.sheet[state * p.nx + i]);
  double weight = 0.0;
  if (other > b) {
    const double difference = sheet_of(b) - (other < p.subbands ? sheet_of(other) : 0.0);
    const double* energy = energies + static_cast<long long>(family * p.nx + i) * n;
    weight = fmax(
        0.0, 4.0 * response_quotient(difference, energy[other] - energy[b], response_cap(largest)));
  }
  const double* column = vectors + static_cast<long long>(family * p.nx + i) * n * n;
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    const double product = column[b * n + k] * column[other * n + k];
    const long long at = (static_cast<long long>(i) * rank + r) * n + k;
    products[at] = product;
    weighted[at] = weight * product;
  }
}

/// Assembles the Newton matrix (−∇·ε_R∇ + (e/ε0)A) times the control volume: its blocks
/// [nx][nz][nz] and the couplings of neighbouring columns [nx−1][nz]. Fixed nodes get identity
/// rows.
__global__ void assemble_kernel(DeviceProblem p, const double* responses, double* blocks,
                                double* couplings) {
  const int n = p.interior;
  const int row = blockIdx.x, i = row / p.nz, j = row % p.nz;
  const double width = p.stencil().width_nm(i), face = p.face_x[j] / p.dx;
  for (int jc = threadIdx.x; jc < p.nz; jc += blockDim.x) {
    double value = 0.0;
    if (p.fixed[row] || p.fixed[i * p.nz + jc]) {
      value = j == jc ? 1.0 : 0.0;
    } else {
      if (j > 0 && j < p.nz - 1 && jc > 0 && jc < p.nz - 1)
        value = kChargeOverEpsilon0_v_nm * width * p.dz * p.dz *
                responses[(static_cast<long long>(i) * n + (j < jc ? j : jc) - 1) * n +
                          (j < jc ? jc : j) - 1];
      if (jc == j) {
        if (j > 0) value += p.eps_cell[j - 1] * width / p.dz;
        if (j < p.nz - 1) value += p.eps_cell[j] * width / p.dz;
        if (i > 0) value += face;
        if (i < p.nx - 1) value += face;
      } else if (jc == j - 1) {
        value -= p.eps_cell[jc] * width / p.dz;
      } else if (jc == j + 1) {
        value -= p.eps_cell[j] * width / p.dz;
      }
    }
    blocks[static_cast<long long>(row) * p.nz + jc] = value;
  }
  if (threadIdx.x == 0 && i + 1 < p.nx)
    couplings[row] = p.fixed[row] || p.fixed[row + p.nz] ? 0.0 : -face;
}

/// Copies a symmetric inverse to bfloat16 from its triangle row ≤ column. Rows are padded with
/// zeros.
__global__ void narrow_inverse_kernel(int nodes, const double* inverse, __nv_bfloat16* narrow) {
  const int row = blockIdx.x, stride = inverse_stride(nodes);
  for (int c = threadIdx.x; c < stride; c += blockDim.x) {
    double value = 0.0;
    if (c < nodes)
      value = row <= c ? inverse[static_cast<long long>(row) * nodes + c]
                       : inverse[static_cast<long long>(c) * nodes + row];
    narrow[static_cast<long long>(row) * stride + c] =
        __float2bfloat16_rn(static_cast<float>(value));
  }
}

}  // namespace quasi::mosfet::cuda
