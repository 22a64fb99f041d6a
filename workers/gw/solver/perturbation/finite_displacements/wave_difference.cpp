#include "workers/gw/solver/perturbation/finite_displacements/wave_difference.hpp"

#include <memory>
#include <utility>

#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/perturbation/finite_displacements/screening_at_rest.hpp"
#include "workers/gw/solver/perturbation/state_coupling.hpp"

namespace quasi::gw {
namespace {

/// Holds the chain of points k, k + p, k + 2p and so on. The chain ends before the first point that
/// equals k up to a reciprocal vector.
struct ChainOfPoints {
  std::vector<Vec3> k;         ///< points; all but the first one are folded into [0, 1)
  std::vector<IVec3> umklapp;  ///< k_j + p = k_(j+1) + umklapp_j; the first k follows the last

  std::size_t size() const { return k.size(); }
  std::size_t next(std::size_t j) const { return (j + 1) % k.size(); }
};

ChainOfPoints chain_of(const Vec3& k, const Vec3& p) {
  ChainOfPoints chain{.k = {k}, .umklapp = {}};
  for (;;) {
    IVec3 whole{};
    if (nearest_lattice_point(chain.k.back() + p - k, &whole)) {
      chain.umklapp.push_back(whole);
      return chain;
    }
    const BraPoint next = bra_point(chain.k.back(), p);
    chain.umklapp.push_back(next.umklapp);
    chain.k.push_back(next.k);
  }
}

/// Holds the inner states s of a displaced crystal as sums of the bands at the points of a chain.
struct StatesOfChain {
  std::vector<double> energy_ry;  ///< E_s, [s]
  std::vector<Cplx> components;   ///< coefficient of each band in s, [s][point][band]
};

/// Calculates Σ_lm(E) between the states at rest at k + p and at k, with the inner states of
/// crystals that are displaced by a wave.
class SigmaOfDisplacedWaves {
 public:
  SigmaOfDisplacedWaves(const MeanField& field, const SigmaOptions& options,
                        const WaveDifferenceRequest& wanted, const std::vector<double>& energies_ry,
                        const DeviceContext& context)
      : field_(field),
        options_(options),
        wanted_(wanted),
        energies_ry_(energies_ry),
        context_(context),
        box_(sum_box(field, field.waves.header.g)),
        chain_(chain_of(field.waves.k[static_cast<std::size_t>(options.kpoints.front())],
                        wanted.perturbations.front().p)),
        n_(options.band_max - options.band_min + 1),
        n_inner_(options.bands * std::ssize(chain_.k)),
        bra_(outer_at(chain_.k[chain_.next(0)])),
        ket_(outer_at(chain_.k[0])),
        block_(context.kernels.pair_products().make_block()) {
    const std::int64_t n_occupied = field.n_occupied * std::ssize(chain_.k);
    for (std::int64_t s = 0; s < n_inner_; ++s) occupation_.push_back(s < n_occupied ? 1.0 : 0.0);
  }

  /// Adds the terms of all q of the star of one irreducible q to the difference of every
  /// perturbation.
  void add_star(const DielectricMatrix& epsilon, int iq,
                std::vector<std::vector<Cplx>>& differences) {
    ScreeningAtRest w(field_, epsilon, options_, context_);
    const GSphere bare = make_g_sphere(field_.crystal().bdot, epsilon.at_gamma ? Vec3{} : epsilon.q,
                                       options_.bare_cutoff_ry);
    const std::vector<double> coulomb = averaged_coulomb(epsilon, bare, context_.coulomb);
    for (const ZonePoint& point : field_.transfers().points()) {
      if (point.irreducible != iq) continue;
      w.move_to(point.k);
      const SpheresAtPoint spheres(field_, point.k, w.sphere(), bare, box_, context_.kernels);
      std::vector<WavesAtPoint> at_rest;
      for (const Vec3& k : chain_.k)
        at_rest.push_back(waves_at(field_, k - point.k, 0, 0, options_.bands, box_));
      for (std::size_t i = 0; i < differences.size(); ++i)
        for (const double sign : {1.0, -1.0}) {
          const StatesOfChain states = displaced(wanted_.perturbations[i], point.k, at_rest, sign);
          std::vector<Cplx> sum(energies_ry_.size() * static_cast<std::size_t>(4 * n_ * n_));
          fill(states, at_rest, *spheres.screened);
          w.add({.n_l = 2 * n_,
                 .n_b = n_inner_,
                 .inner_ry = states.energy_ry,
                 .occupation = occupation_,
                 .weight = weight()},
                energies_ry_, *block_, sum);
          fill(states, at_rest, *spheres.bare);
          add_exchange_matrix(*block_, coulomb, field_.n_occupied * std::ssize(chain_.k), weight(),
                              sum);
          add_elements(sum, sign, differences[i]);
          context_.progress.throw_if_cancelled();
        }
    }
  }

  std::vector<Cplx> empty() const {
    return std::vector<Cplx>(energies_ry_.size() * static_cast<std::size_t>(n_ * n_));
  }

 private:
  double weight() const { return 1.0 / field_.zone_volume_bohr3(); }

  std::unique_ptr<const LoadedBands> outer_at(const Vec3& k) const {
    return load(context_.kernels,
                waves_at(field_, k, 0, options_.band_min - 1, options_.band_max, box_));
  }

  /// Returns the inner states of the crystal displaced by ±h, at the points of the chain less q.
  StatesOfChain displaced(const Perturbation& perturbation, const Vec3& q,
                          const std::vector<WavesAtPoint>& at_rest, double sign) const {
    const auto n_b = static_cast<std::size_t>(options_.bands),
               n = static_cast<std::size_t>(n_inner_);
    std::vector<Cplx> h(n * n);
    for (std::size_t j = 0; j < chain_.size(); ++j) {
      const std::size_t bra = chain_.next(j);
      const std::vector<Cplx> v = state_coupling(perturbation, chain_.k[j] - q, at_rest[bra],
                                                 chain_.umklapp[j], at_rest[j]);
      for (std::size_t a = 0; a < n_b; ++a) {
        h[(j * n_b + a) * (n + 1)] +=
            field_.waves.energy(0, at_rest[j].rotation.irreducible, static_cast<int>(a));
        for (std::size_t b = 0; b < n_b; ++b) {
          const Cplx element = sign * wanted_.step_bohr * v[a * n_b + b];
          h[(bra * n_b + a) * n + j * n_b + b] += element;
          h[(j * n_b + b) * n + bra * n_b + a] += std::conj(element);
        }
      }
    }
    StatesOfChain states{std::vector<double>(n), std::vector<Cplx>(n * n)};
    context_.kernels.dense().eigen_hermitian(view<const Cplx>(h, n_inner_, n_inner_),
                                             view<double>(states.energy_ry, n_inner_),
                                             view<Cplx>(states.components, n_inner_, n_inner_));
    return states;
  }

  /// Returns ⟨l|e^{i(q+G)·r}|s⟩ of outer states l with all inner states s. Only the part of s
  /// at the point j of the chain contributes.
  std::vector<Cplx> products(const LoadedBands& outer, std::size_t j, const StatesOfChain& states,
                             const WavesAtPoint& at_rest, const LoadedSphere& sphere) {
    const std::int64_t n_b = options_.bands, row = at_rest.waves.coefficients.extent[1];
    std::vector<Cplx> coefficients(static_cast<std::size_t>(n_inner_ * row));
    zgemm({.transpose_b = CblasNoTrans, .m = n_inner_, .n = row, .k = n_b},
          {states.components.data() + static_cast<std::int64_t>(j) * n_b, n_inner_},
          {at_rest.waves.coefficients.data, row}, {coefficients.data(), row});
    const auto inner = context_.kernels.pair_products().load_bands(
        box_, view<const Cplx>(coefficients, n_inner_, row),
        view<const std::int32_t>(at_rest.box_index, std::ssize(at_rest.waves.g)));
    context_.kernels.pair_products().fill({outer, {0, n_}}, {*inner, {0, n_inner_}}, sphere,
                                          *block_);
    std::vector<Cplx> values(static_cast<std::size_t>(n_ * n_inner_ * block_->n_g()));
    block_->read(view<Cplx>(values, n_, n_inner_, block_->n_g()));
    return values;
  }

  /// Fills a block with the products of the bras at k + p, followed by those of the kets at k.
  void fill(const StatesOfChain& states, const std::vector<WavesAtPoint>& at_rest,
            const LoadedSphere& sphere) {
    const std::size_t bra = chain_.next(0);
    std::vector<Cplx> all = products(*bra_, bra, states, at_rest[bra], sphere);
    const std::vector<Cplx> of_kets = products(*ket_, 0, states, at_rest[0], sphere);
    all.insert(all.end(), of_kets.begin(), of_kets.end());
    block_->load(view<const Cplx>(all, 2 * n_, n_inner_, block_->n_g()));
  }

  /// Adds sign × Σ_lm/2h of bras l and kets m to a difference.
  void add_elements(const std::vector<Cplx>& sum, double sign, std::vector<Cplx>& difference) {
    // In a chain of one or two points p and −p are the same wave, so that the atoms move by 2h.
    const double scale = sign / (2.0 * wanted_.step_bohr * (chain_.size() <= 2 ? 2.0 : 1.0));
    for (std::size_t e = 0; e < energies_ry_.size(); ++e)
      for (std::int64_t l = 0; l < n_; ++l)
        for (std::int64_t m = 0; m < n_; ++m) {
          const auto first = static_cast<std::int64_t>(e);
          difference[static_cast<std::size_t>((first * n_ + l) * n_ + m)] +=
              scale * sum[static_cast<std::size_t>((first * 2 * n_ + l) * 2 * n_ + n_ + m)];
        }
  }

  const MeanField& field_;
  const SigmaOptions& options_;
  const WaveDifferenceRequest& wanted_;
  const std::vector<double>& energies_ry_;
  const DeviceContext& context_;
  std::array<int, 3> box_;
  ChainOfPoints chain_;
  std::int64_t n_, n_inner_;
  std::unique_ptr<const LoadedBands> bra_, ket_;
  std::unique_ptr<PairBlock> block_;
  std::vector<double> occupation_;
};

}  // namespace

std::vector<std::vector<Cplx>> wave_differences(const MeanField& field,
                                                const std::vector<DielectricMatrix>& epsilon,
                                                const SigmaOptions& options,
                                                const WaveDifferenceRequest& wanted,
                                                const DeviceContext& context) {
  const std::vector<double> energies_ry =
      options.method == SigmaMethod::kCohsex ? std::vector<double>{0.0} : wanted.energies_ry;
  SigmaOfDisplacedWaves sigma(field, options, wanted, energies_ry, context);
  std::vector<std::vector<Cplx>> differences(wanted.perturbations.size(), sigma.empty());
  for (std::size_t iq = 0; iq < epsilon.size(); ++iq)
    sigma.add_star(epsilon[iq], static_cast<int>(iq), differences);
  return differences;
}

}  // namespace quasi::gw
