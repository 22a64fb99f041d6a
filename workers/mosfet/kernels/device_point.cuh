#pragma once

#include "workers/backend/device/device_buffer.cuh"
#include "workers/mosfet/kernels/electrostatics/row_product.cuh"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/physics/poisson_stencil.hpp"

/// Structs that the CUDA kernels of the kind mosfet share: the problem and one bias point as plain
/// pointers.
namespace quasi::mosfet::cuda {

/// One process that joins two states, given by partner and process.
struct JoinedProcess {
  int other, process;
};

/// The problem on the device. Kernels get it by value.
struct DeviceProblem {
  int nx, nz, nw, angles, nphi, n_valleys, subbands, n_families, n_processes;
  int interior, n_states, n_levels;  ///< nz−2; n_valleys·subbands; n_families·subbands
  double dx, dz, dw, dphi, alpha, kt, weno_epsilon, tol_v, cfl, lead;
  bool balanced, scatters, frozen, pauli, neutral;
  int silicon_first, silicon_last;           ///< z nodes of the interfaces
  const double* roughness_spectrum;          ///< [n_valleys][nw][nw]; null for smooth interfaces
  const double* elastic_rate;                ///< [n_valleys][nx][nw]; null: none
  const double* mz;                          ///< [n_families]
  const double *cos_phi, *sin_phi, *weight;  ///< [angles]
  const int* mirror;                         ///< [angles]
  const double *speed, *turning;             ///< [n_valleys][nw]
  const double *root_mass, *offset;          ///< [n_valleys]
  const int* family_of;                      ///< [n_valleys]
  const ScatteringProcess* processes;
  const JoinedProcess* joined;  ///< [n_valleys][most_joined]
  const int* joined_count;      ///< [n_valleys]
  int most_joined;
  const double *base, *off;  ///< H without −V [n_families][interior]
  const double* eps_cell;    ///< [nz−1]
  const double* face_x;      ///< ε_R Δz of faces between columns [nz]
  const double* doping;      ///< [nx][nz]
  const char* fixed;         ///< [nx][nz]
  double residual_unit;

  __device__ EnergyGrid grid() const { return {dw, alpha, kt, nw}; }
  __device__ PoissonStencil stencil() const { return {nx, nz, dx, dz, eps_cell, face_x}; }
};

/// Numbers of a point that stay on the device between kernels.
struct PointClock {
  double dt, time, stop, shrink, last_dt, residual;
  int chord_iterations, failed, active, records;
  long long step;
};

/// One bias point on the device. Kernels get it by value.
struct DevicePoint {
  double *pdf, *stage_a, *stage_b;     ///< Φⁿ, Φ¹, Φ² [n_states][nx][nw][angles]
  double *angle_sum, *gain, *loss;     ///< [n_states][nx][nw]
  double* current_partial;             ///< [n_states][tiles][nx+1]
  double *current, *current_integral;  ///< [nx+1]
  double *potential, *v_n, *v_1, *v_2, *trend, *curvature;  ///< [nx][nz]
  double *energy, *psi;                                     ///< [n_levels][nx](×[nz])
  double *lead, *energy_n;  ///< τ_d ∂ε/∂t of the last step; ε at its start [n_levels][nx]
  double* sheet;            ///< [n_states][nx]
  double* family_density;   ///< [n_families][nx][nz]
  double* block_max;        ///< [2][blocks of the field kernel]
  __nv_bfloat16* inverse;   ///< frozen Newton matrix, inverted [nx·nz][inverse_stride(nx·nz)]
  const double *inflow_source, *inflow_drain;  ///< [n_states][nw]
  PointBoundary::Neutral neutral_source, neutral_drain;
  double* inflow_scale;  ///< [2] source, drain
  double pdf_scale;
  PointClock* clock;
  StepRecord* records;
};

}  // namespace quasi::mosfet::cuda
