#pragma once

#include <cstdint>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/event.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/gpp_offdiagonal_cuda.cuh"

namespace quasi::gw::cuda {

/// One off-diagonal sum on one device (docs/theory/gw.md 7): common data and steps. DirectSum adds
/// the direct pairs and SeparableSum the separable ones.
///
/// A Hermitian model has a Hermitian P. Then only S = Σ w T M† is summed, with T = M L
/// (folded_weight) where the product can be folded and ½ M P where it cannot, and Σ = S + S† at the
/// end.
class OffDiagonalSum {
 public:
  OffDiagonalSum(const OffDiagonalInput& input, const OffDiagonalTerms& terms,
                 const OffDiagonalOptions& options, const OffDiagonalWorkspace& workspace,
                 const OffDiagonalPlan& plan);

  /// Adds T of energies [begin, end) of one band: Σ[e] += factor w T[e] M'†.
  void add_t(const double2* t, const EnergyRun& energies, double factor);
  /// Σ[e] += Σ_p c[e][p] D[p] on both parts of all (l, m), as one real product.
  /// @param d  [count][n_left][n_m];  c  [n_energies][count], rows `stride` apart
  void add_products(const double2* d, const double* c, std::int64_t count, std::int64_t stride);
  /// Measures the residual of the first product that is not native.
  /// @throws NotConverged where it exceeds the limit of the options
  void measure_residual_once(const MatrixProduct& product);
  /// Counts the products T M† of `count` (n, E) or (n, k).
  void count_adjoint(std::int64_t count);
  void count_flops(double flops) { report_.zgemm_flops += flops; }
  /// Adds the sum to `sigma` on the host.
  OffDiagonalReport finish(View<Cplx, 3> sigma);

  /// The fused product is the faster one for these sizes and options.
  bool fused_pays() const;
  /// Number of elements of P that the fused product multiplies with one row of M.
  double fused_depths() const;
  /// M_ln of band n for all l, as rows.
  DeviceMatrix bands_of(std::int64_t band) const {
    return {input.products.products + band * n_g, n_right * n_g};
  }
  /// M'_mn of band n for all m, as rows.
  DeviceMatrix ket_bands_of(std::int64_t band) const {
    return {input.ket.products + band * n_g, n_right * n_g};
  }
  bool folded() const { return input.model.folded; }
  void wait() const;

  const OffDiagonalInput input;
  const OffDiagonalTerms& terms;
  const OffDiagonalPlan& plan;
  const OffDiagonalOptions options;
  const OffDiagonalWorkspace work;
  const std::int64_t n_left, n_m, n_right, n_g, n_energies;

 private:
  quasi::cuda::DeviceBuffer<double2> sigma_;  ///< [n_energies][n_left][n_m]
  bool measured_ = false;
  OffDiagonalReport report_;
};

/// Memory of the direct pairs, which must live until their products are done.
class DirectSum {
 public:
  explicit DirectSum(OffDiagonalSum& sum) : sum_(sum) {}
  /// Adds the direct pairs. The products may still run on return.
  void add();

 private:
  void add_in_buffers();
  void add_fused();
  void fill_t(const EnergyRun& run, std::int64_t per_buffer, double2* t);

  OffDiagonalSum& sum_;
  quasi::cuda::DeviceBuffer<double2> p_[2];  ///< P of several energies, [n_g][energies][n_g]
  quasi::cuda::Event made_[2], used_[2];
  int buffer_ = 0;
  quasi::cuda::DeviceBuffer<double2> t_, packed_;
  quasi::cuda::DeviceBuffer<double> energies_;
};

/// Adds the separable pairs of a plan that fit_separable_pairs has completed. Done on return.
void add_separable_pairs(OffDiagonalSum& sum);

}  // namespace quasi::gw::cuda
