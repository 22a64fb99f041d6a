#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "workers/gw/solver/perturbation/contour_first_order.hpp"
#include "workers/gw/solver/perturbation/screened_poles.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

// The folder finite_displacements checks the first order of Σ by central differences. The inner
// states are those of displaced crystals, and W is that of the crystal at rest (docs/theory/gw.md
// 14.5). Begin with finite_difference.hpp for displacements with the period of the lattice, and
// with wave_difference.hpp for others.
namespace quasi::gw {

/// Holds W of the crystal at rest at one irreducible q. W is a set of plasmon poles, or a list of
/// matrices at the frequencies of contour deformation.
class ScreeningAtRest {
 public:
  /// Keeps references to all arguments but `epsilon`.
  ScreeningAtRest(const MeanField& field, const DielectricMatrix& epsilon,
                  const SigmaOptions& options, const DeviceContext& context);
  const GSphere& sphere() const { return contour_ ? contour_->sphere() : poles_->sphere(); }

  /// Selects the q of the star at which the next products are screened.
  void move_to(const Vec3& q);

  /// Adds Σ_c of one block of bands to `sum`, Ry, [E][l][m]. If W has a subspace, the products are
  /// projected on it.
  void add(const BandBlock& block, const std::vector<double>& energies_ry, PairBlock& products,
           std::vector<Cplx>& sum) const;

 private:
  const MeanField& field_;
  const SigmaOptions& options_;
  const DeviceContext& context_;
  std::optional<ContourScreening> contour_;
  std::optional<ScreenedPoles> poles_;
  std::shared_ptr<const LoadedPoleModel> loaded_;
};

/// Holds the plane waves of W and those of the exchange at one q on a device.
struct SpheresAtPoint {
  std::unique_ptr<const LoadedSphere> screened, bare;

  /// @param of_w, of_exchange  plane waves at the irreducible q
  SpheresAtPoint(const MeanField& field, const Vec3& q, const GSphere& of_w,
                 const GSphere& of_exchange, const std::array<int, 3>& box, GwKernels& kernels);
};

/// Adds the exchange −weight Σ_n Σ_G M_ln(G) v̄(G) M*_mn(G) to every energy of `sum`, Ry,
/// [E][l][m]. The sum over n has the first n_occupied inner states.
void add_exchange_matrix(const PairBlock& products, const std::vector<double>& coulomb,
                         std::int64_t n_occupied, double weight, std::vector<Cplx>& sum);

}  // namespace quasi::gw
