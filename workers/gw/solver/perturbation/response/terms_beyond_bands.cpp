#include "workers/gw/solver/perturbation/response/terms_beyond_bands.hpp"

#include <algorithm>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/solver/perturbation/contour_differences.hpp"
#include "workers/gw/solver/perturbation/coupling_parts.hpp"
#include "workers/gw/solver/perturbation/response/pseudoband_response.hpp"
#include "workers/gw/solver/perturbation/spinors/spin_orbit_displacement.hpp"

namespace quasi::gw {
namespace {

/// Right sides of the Sternheimer equation that are solved together. They limit the memory.
constexpr std::int64_t kRightSides = 512;

const std::vector<Perturbation>& require_local(const std::vector<Perturbation>& perturbations) {
  if (!are_local(perturbations))
    throw InvalidInput(
        "perturbation.state_response = \"sternheimer\" is built for local potentials with the "
        "period of the lattice; set it to \"sum\"");
  return perturbations;
}

const WavesAtPoint& eigenstates(const StatesOfPoint& states) {
  return states.pseudobands != nullptr ? states.kept : states.inner;
}
std::vector<double> energies_of_eigenstates(const StatesOfPoint& states) {
  const auto n = static_cast<std::ptrdiff_t>(eigenstates(states).waves.coefficients.extent[0]);
  return {states.bands.energy_ry.begin(), states.bands.energy_ry.begin() + n};
}

/// Returns W = I_GG' v̄(G') of one frequency on all plane waves of W, [n_g][n_g].
std::vector<Cplx> whole_matrix(const FrequencyDependentW& w, std::size_t frequency) {
  const SubspaceOfW& s = w.subspace;
  if (!s.used()) {
    const UnsetVector<Cplx> matrix = screened_matrix(w.at, frequency, w.wings);
    return {matrix.begin(), matrix.end()};
  }
  const std::int64_t n = s.n, n_b = s.n_b;
  std::vector<Cplx> matrix(static_cast<std::size_t>(n * n));
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = s.share[frequency] * s.rest[i];
  if (!s.diagonal.empty() && !s.diagonal[frequency].empty())
    for (std::int64_t g = 0; g < n; ++g)
      matrix[static_cast<std::size_t>(g * (n + 1))] +=
          s.diagonal[frequency][static_cast<std::size_t>(g)];
  if (s.inner[frequency].empty()) return matrix;
  std::vector<Cplx> left(static_cast<std::size_t>(n * n_b));
  zgemm({.transpose_b = CblasNoTrans, .m = n, .n = n_b, .k = n_b}, {s.basis.data(), n_b},
        {s.inner[frequency].data(), n_b}, {left.data(), n_b});
  zgemm({.transpose_b = CblasConjTrans, .m = n, .n = n, .k = n_b, .beta = 1.0}, {left.data(), n_b},
        {s.basis.data(), n_b}, {matrix.data(), n});
  return matrix;
}

std::vector<Cplx> adjoint_of(const std::vector<Cplx>& matrix, std::int64_t n) {
  std::vector<Cplx> adjoint(matrix.size());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      adjoint[static_cast<std::size_t>(j * n + i)] =
          std::conj(matrix[static_cast<std::size_t>(i * n + j)]);
  return adjoint;
}

/// Adds a value to the correlation with fixed energies and to the whole one.
void add_correlation(DerivativeSums& sum, std::size_t at, const Cplx& value) {
  sum.fixed_energies[at] += value;
  sum.correlation[at] += value;
}

}  // namespace

namespace {

/// Returns rows of `range` copied without the bands in `left_out`.
/// @param values  [rows][n_bands][n_g]
std::vector<Cplx> rows_without(const std::vector<Cplx>& values, BandRange left_out,
                               std::int64_t n_bands, std::int64_t n_g) {
  std::vector<Cplx> rest;
  rest.reserve(values.size());
  const std::int64_t row = n_bands * n_g;
  for (auto at = values.begin(); at != values.end(); at += row) {
    rest.insert(rest.end(), at, at + left_out.begin * n_g);
    rest.insert(rest.end(), at + left_out.end * n_g, at + row);
  }
  return rest;
}

}  // namespace

/// Holds the products of the kets n of a part, [n_outer][n][n_g], and of ψ'_n, [(p, m)][n][n_g].
struct TermsBeyondBands::Part {
  std::int64_t n_kets = 0, n_p = 0, n_screened = 0, n_bare = 0;
  std::vector<Cplx> screened, bare;                    ///< M_mn
  std::vector<Cplx> screened_response, bare_response;  ///< M'_mn of each perturbation
  std::vector<double> energy_ry, occupation;           ///< of the kets
  double scale = 1.0;                                  ///< factor of all terms

  /// Returns the part without some kets, counted from the first one. Products without W are absent.
  Part without(BandRange left_out, double factor) const {
    Part rest{.n_kets = n_kets - left_out.size(), .n_p = n_p, .n_screened = n_screened};
    rest.screened = rows_without(screened, left_out, n_kets, n_screened);
    rest.screened_response = rows_without(screened_response, left_out, n_kets, n_screened);
    for (std::int64_t n = 0; n < n_kets; ++n)
      if (n < left_out.begin || n >= left_out.end) {
        rest.energy_ry.push_back(energy_ry[static_cast<std::size_t>(n)]);
        rest.occupation.push_back(occupation[static_cast<std::size_t>(n)]);
      }
    rest.scale = factor;
    return rest;
  }
};

/// Describes sums over plasmon poles: at every energy of Σ, or at one energy for all of them.
struct TermsBeyondBands::PoleTerms {
  std::vector<double> energies_ry, kets_ry, occupation;
  double factor = 1.0;
};

TermsBeyondBands::TermsBeyondBands(const std::vector<Perturbation>& perturbations,
                                   const StateResponse& response, const Crystal& crystal,
                                   StatesOfPoint states, GwKernels& kernels)
    : perturbations_(require_local(perturbations)),
      states_(std::move(states)),
      kernels_(kernels),
      equation_(response.parts(crystal, states_.k, states_.inner.waves.g), eigenstates(states_),
                energies_of_eigenstates(states_), response.residual, kernels) {
  if (states_.pseudobands == nullptr) return;
  h_ = std::make_unique<const HamiltonianOperator>(
      response.parts(crystal, states_.k, states_.inner.waves.g));
  loaded_ = kernels.hamiltonian().load(*h_);
}

// Returns ∂V ψ_n of eigenstates, [n_p][kets.size()][n].
std::vector<Cplx> TermsBeyondBands::applied(std::span<const Perturbation> perturbations,
                                            BandRange kets) const {
  const WavesAtPoint& states = eigenstates(states_);
  const SpinorsAtPoint spinors{states_.k,
                               states.waves.g,
                               {&states.waves.coefficients(kets.begin, 0),
                                {kets.size(), states.waves.coefficients.extent[1]}}};
  std::vector<Cplx> all;
  for (const Perturbation& perturbation : perturbations) {
    std::vector<Cplx> one = applied_potential(perturbation.elements, states, kets);
    if (perturbation.spin_orbit != nullptr)
      perturbation.spin_orbit->add_applied(1.0, spinors, one.data());
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

std::vector<Cplx> TermsBeyondBands::responses(std::span<const Perturbation> perturbations,
                                              BandRange kets) const {
  const PseudobandPlan* const plan = states_.pseudobands;
  if (plan == nullptr || kets.begin < plan->kept)
    return equation_.solve(applied(perturbations, kets), kets);
  const BandRange kept{0, plan->kept};
  return pseudoband_response({*plan, states_.k, states_.inner.waves.g,
                              states_.kept.waves.coefficients, states_.factors.waves.coefficients},
                             *loaded_, perturbations,
                             equation_.solve(applied(perturbations, kept), kept));
}

std::vector<Cplx> TermsBeyondBands::products(const LoadedBands& right, BandRange range,
                                             const LoadedSphere& sphere, std::int64_t& n_g) const {
  const auto block = kernels_.pair_products().make_block();
  kernels_.pair_products().fill({*states_.outer, {0, states_.n_outer}}, {right, range}, sphere,
                                *block);
  n_g = block->n_g();
  std::vector<Cplx> values(static_cast<std::size_t>(block->n_pairs() * n_g));
  block->read(view<Cplx>(values, states_.n_outer, range.size(), n_g));
  return values;
}

TermsBeyondBands::Part TermsBeyondBands::part_of(BandRange kets) const {
  const View<const Cplx, 2>& c = states_.inner.waves.coefficients;
  const std::int64_t n_kets = kets.size(), row = c.extent[1];
  Part part{.n_kets = n_kets};
  const auto first = static_cast<std::ptrdiff_t>(kets.begin), last = first + n_kets;
  part.energy_ry.assign(states_.bands.energy_ry.begin() + first,
                        states_.bands.energy_ry.begin() + last);
  part.occupation.assign(states_.bands.occupation.begin() + first,
                         states_.bands.occupation.begin() + last);
  const auto loaded = kernels_.pair_products().load_bands(
      states_.box, {c.data + kets.begin * row, {n_kets, row}}, box_index());
  part.screened = products(*loaded, {0, n_kets}, *states_.screened, part.n_screened);
  part.bare = products(*loaded, {0, n_kets}, *states_.bare, part.n_bare);
  return part;
}

void TermsBeyondBands::add(BandRange kets, BandRange perturbations,
                           const InteractionsOfPoint& interactions,
                           std::span<DerivativeSums> sums) const {
  Part part = part_of(kets);
  const PseudobandPlan* const plan = states_.pseudobands;
  const bool are_random = plan != nullptr && kets.begin >= plan->kept;
  const std::int64_t n_p = perturbations.size(), row = states_.inner.waves.coefficients.extent[1],
                     at_once =
                         are_random ? n_p : std::max<std::int64_t>(1, kRightSides / part.n_kets);
  for (std::int64_t begin = 0; begin < n_p; begin += at_once) {
    part.n_p = std::min(at_once, n_p - begin);
    const std::vector<Cplx> response =
        responses(std::span(perturbations_)
                      .subspan(static_cast<std::size_t>(perturbations.begin + begin),
                               static_cast<std::size_t>(part.n_p)),
                  kets);
    const auto loaded = kernels_.pair_products().load_bands(
        states_.box, view<const Cplx>(response, part.n_p * part.n_kets, row), box_index());
    part.screened_response.clear();
    part.bare_response.clear();
    for (std::int64_t p = 0; p < part.n_p; ++p) {
      const BandRange of_p{p * part.n_kets, (p + 1) * part.n_kets};
      const auto screened = products(*loaded, of_p, *states_.screened, part.n_screened),
                 bare = products(*loaded, of_p, *states_.bare, part.n_bare);
      part.screened_response.insert(part.screened_response.end(), screened.begin(), screened.end());
      part.bare_response.insert(part.bare_response.end(), bare.begin(), bare.end());
    }
    for (std::size_t i = 0; i < interactions.count; ++i) {
      const auto here =
          sums.subspan(i * static_cast<std::size_t>(n_p) + static_cast<std::size_t>(begin),
                       static_cast<std::size_t>(part.n_p));
      const InteractionOfPoint interaction = interactions.load(i);
      if (i == 0) add_exchange(part, interaction.coulomb, here);
      std::optional<Part> fewer;
      if (i > 0 && are_random) {
        const auto [first, end] = plan->bands_of_block(static_cast<int>(i) - 1);
        fewer = part.without({first - plan->kept, end - plan->kept},
                             plan->blocks / (plan->blocks - 1.0));
      }
      if (interaction.contour != nullptr)
        add_contour(fewer ? *fewer : part, interaction, here);
      else
        add_poles(fewer ? *fewer : part, interaction, here);
    }
  }
}

void TermsBeyondBands::add_poles(const Part& part, const InteractionOfPoint& interaction,
                                 std::span<DerivativeSums> sums) const {
  add_pole_terms(part, interaction,
                 {{interaction.energies_ry.begin(), interaction.energies_ry.end()},
                  part.energy_ry,
                  part.occupation},
                 sums);
  if (!states_.closed_x_ry) return;
  const auto n = static_cast<std::size_t>(part.n_kets);
  add_pole_terms(
      part, interaction,
      {{0.0}, std::vector<double>(n, -*states_.closed_x_ry), std::vector<double>(n), -1.0}, sums);
}

void TermsBeyondBands::add_pole_terms(const Part& part, const InteractionOfPoint& interaction,
                                      const PoleTerms& wanted,
                                      std::span<DerivativeSums> sums) const {
  const std::int64_t n = states_.n_outer, n_kets = part.n_kets, n_g = part.n_screened,
                     n_e = std::ssize(wanted.energies_ry), stacked = part.n_p * n,
                     n_all = std::ssize(interaction.energies_ry);
  const auto bands = kernels_.pair_products().make_block(),
             response = kernels_.pair_products().make_block();
  bands->load(view<const Cplx>(part.screened, n, n_kets, n_g));
  response->load(view<const Cplx>(part.screened_response, stacked, n_kets, n_g));
  const OffDiagonalTerms terms{
      view<const double>(wanted.energies_ry, n_e), view<const double>(wanted.kets_ry, n_kets),
      view<const double>(wanted.occupation, n_kets), wanted.factor * part.scale * states_.weight};
  std::vector<Cplx> right(static_cast<std::size_t>(n_e * n * stacked)), left;
  interaction.poles->add_offdiagonal_between(*bands, *response, terms, {},
                                             view<Cplx>(right, n_e, n, stacked));
  if (!interaction.hermitian) {
    left.resize(right.size());
    interaction.poles->add_offdiagonal_between(*response, *bands, terms, {},
                                               view<Cplx>(left, n_e, stacked, n));
  }
  const auto of_ket = view<const Cplx>(right, n_e, n, stacked),
             of_bra = view<const Cplx>(left, n_e, stacked, n);
  for (std::int64_t p = 0; p < part.n_p; ++p)
    for (std::int64_t i = 0; i < n_all; ++i)
      for (std::int64_t l = 0; l < n; ++l)
        for (std::int64_t m = 0; m < n; ++m) {
          const std::int64_t e = std::min(i, n_e - 1);
          add_correlation(
              sums[static_cast<std::size_t>(p)], static_cast<std::size_t>((i * n + l) * n + m),
              of_ket(e, l, p * n + m) + (interaction.hermitian ? std::conj(of_ket(e, m, p * n + l))
                                                               : of_bra(e, p * n + l, m)));
        }
}

void TermsBeyondBands::add_contour(const Part& part, const InteractionOfPoint& interaction,
                                   std::span<DerivativeSums> sums) const {
  const std::int64_t n = states_.n_outer, n_part = part.n_kets, n_g = part.n_screened,
                     n_e = std::ssize(interaction.energies_ry), stacked = part.n_p * n;
  const ContourShares shares(interaction.contour->grid());
  std::vector<std::vector<double>> share;  // [e · n_part + n][frequency]
  for (std::int64_t e = 0; e < n_e; ++e)
    for (std::size_t i = 0; i < part.energy_ry.size(); ++i)
      share.push_back(
          shares.at(interaction.energies_ry[static_cast<std::size_t>(e)] - part.energy_ry[i],
                    part.occupation[i] > 0.5));
  const FrequencyDependentW w = interaction.contour->at_q();
  const auto times = [&](const std::vector<Cplx>& matrix) {
    const auto block = kernels_.pair_products().make_block();
    block->load(view<const Cplx>(part.screened, n, n_part, n_g));
    block->project(view<const Cplx>(matrix, n_g, n_g));
    std::vector<Cplx> values(part.screened.size());
    block->read(view<Cplx>(values, n, n_part, n_g));
    return values;
  };
  for (std::size_t f = 0; f < shares.size(); ++f) {
    if (std::all_of(share.begin(), share.end(), [&](const auto& s) { return s[f] == 0.0; }))
      continue;
    const std::vector<Cplx> matrix = whole_matrix(w, f), of_bra = times(matrix),
                            of_ket = times(adjoint_of(matrix, n_g));
    std::vector<Cplx> right(static_cast<std::size_t>(n * stacked)), left(right.size());
    for (std::int64_t b = 0; b < n_part; ++b) {
      const std::int64_t at = b * n_g, stride = n_part * n_g;
      const Cplx* const response = part.screened_response.data() + at;
      zgemm({.transpose_b = CblasConjTrans, .m = n, .n = stacked, .k = n_g},
            {of_bra.data() + at, stride}, {response, stride}, {right.data(), stacked});
      zgemm({.transpose_b = CblasConjTrans, .m = stacked, .n = n, .k = n_g}, {response, stride},
            {of_ket.data() + at, stride}, {left.data(), n});
      for (std::int64_t e = 0; e < n_e; ++e) {
        const double factor =
            part.scale * states_.weight * share[static_cast<std::size_t>(e * n_part + b)][f];
        for (std::int64_t p = 0; factor != 0.0 && p < part.n_p; ++p)
          for (std::int64_t l = 0; l < n; ++l)
            for (std::int64_t m = 0; m < n; ++m)
              add_correlation(sums[static_cast<std::size_t>(p)],
                              static_cast<std::size_t>((e * n + l) * n + m),
                              factor * (right[static_cast<std::size_t>(l * stacked + p * n + m)] +
                                        left[static_cast<std::size_t>((p * n + l) * n + m)]));
      }
    }
  }
}

void TermsBeyondBands::add_exchange(const Part& part, std::span<const double> coulomb,
                                    std::span<DerivativeSums> sums) const {
  const std::int64_t n = states_.n_outer, n_g = part.n_bare, stride = part.n_kets * n_g,
                     stacked = part.n_p * n,
                     n_occupied = std::count(part.occupation.begin(), part.occupation.end(), 1.0);
  std::vector<Cplx> weighted(part.bare.size()), sum(static_cast<std::size_t>(stacked * n));
  for (std::size_t i = 0; i < weighted.size(); ++i)
    weighted[i] = coulomb[i % static_cast<std::size_t>(n_g)] * part.bare[i];
  // Occupied bands come first, so that their products are the first ones of every row.
  zgemm({.transpose_b = CblasConjTrans,
         .m = stacked,
         .n = n,
         .k = n_occupied * n_g,
         .alpha = -states_.weight},
        {part.bare_response.data(), stride}, {weighted.data(), stride}, {sum.data(), n});
  const auto of_bra = view<const Cplx>(sum, stacked, n);
  for (std::int64_t p = 0; p < part.n_p; ++p)
    for (std::int64_t l = 0; l < n; ++l)
      for (std::int64_t m = 0; m < n; ++m)
        sums[static_cast<std::size_t>(p)].exchange[static_cast<std::size_t>(l * n + m)] +=
            of_bra(p * n + l, m) + std::conj(of_bra(p * n + m, l));
}

}  // namespace quasi::gw
