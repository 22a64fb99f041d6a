#include "workers/gw/solver/calculation/memory/first_order_memory.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "workers/gw/solver/perturbation/displacement_elements.hpp"

namespace quasi::gw {

FirstOrderBytes bytes_of_first_order(const Deck& deck, const MeanField& field, const Plan& plan,
                                     double n_screened, const PseudobandPlan* random) {
  constexpr double kScratch_bytes = 2147483648.0, kKetsOfPart = 32.0, kKetsInWork = 16.0,
                   kRightSides = 512.0;
  const SigmaOptions& s = plan.sigma;
  const bool contour = s.method == SigmaMethod::kContour;
  const auto n_p =
      static_cast<double>(deck.perturbation.folders.empty()
                              ? displacements_of(deck.perturbation, field.crystal()).size()
                              : deck.perturbation.folders.size());
  const auto n_bare =
      static_cast<double>(make_g_sphere(field.crystal().bdot, {}, s.bare_cutoff_ry).size());
  // The states of k and of k + q have products and energies of their own.
  const double sides = deck.perturbation.wave_vectors.empty() ? 1.0 : 2.0;
  const double n_l = s.band_max - s.band_min + 1, n_b = random != nullptr ? random->kept : s.bands,
               n_e = s.method == SigmaMethod::kCohsex ? 1.0 : sides * n_l,
               n_pw = static_cast<double>(field.waves.waves.front().g.size()),
               row = n_pw * field.n_spinor(),  // coefficients of a state
      of_sum = 16.0 * n_p * n_e * n_l * n_l, states = (plan.on_cpu ? 48.0 : 32.0) * s.bands * row,
               z = 16.0 * n_l * n_b * n_l,
               n_f = contour ? static_cast<double>(plan.epsilon.frequencies_ry.size()) : 0.0;
  FirstOrderBytes bytes{.products = sides * (16.0 * n_l * n_b * (n_screened + n_bare) + states)};
  bytes.sums =
      16.0 * n_p * n_b * kKetsOfPart + 4.0 * of_sum + 8.0 * n_e * (n_b + kKetsOfPart) * n_f;
  if (plan.on_cpu) {
    const double threads = std::min<double>(omp_get_max_threads(), kKetsInWork);
    bytes.sums += (contour ? 2.0 : 3.0) * kKetsInWork * of_sum;
    bytes.kernel = threads * (16.0 * n_screened * n_screened + z);
  } else {
    bytes.kernel = std::min(kScratch_bytes, n_e * kKetsOfPart * (z + 16.0 * n_l * n_screened));
  }
  if (deck.perturbation.sternheimer) {
    // Right sides solved together, five vectors of each, and their products on host and device. H
    // on spinors has three projectors of each atom.
    const double columns = std::min(kRightSides, n_p * kKetsOfPart),
                 projectors = field.n_spinor() == 2
                                  ? 3.0 * static_cast<double>(field.crystal().atoms.size())
                                  : 0.0;
    bytes.kernel += 32.0 * projectors * n_pw + 80.0 * columns * row +
                    (plan.on_cpu ? 32.0 : 16.0) * columns * n_l * (n_screened + n_bare);
  }
  if (random != nullptr) {
    // Three perturbations at a time: windows and their first orders, four sets of vectors of the
    // recursion, and products of all of them beside those of one interaction.
    const double n_r = random->bands() - random->kept, at_once = std::min(3.0, n_p),
                 vectors = static_cast<double>(random->chosen.size());
    bytes.kernel += 16.0 * n_pw * ((3.0 * at_once + 1.0) * n_r + 4.0 * (1.0 + at_once) * vectors) +
                    (1.0 + at_once) * n_l * n_r * (48.0 * n_screened + 16.0 * n_bare);
  }
  const double n_parts =
      std::max(1.0, std::floor(n_b / kKetsOfPart)) * static_cast<double>(field.zone.size());
  // Pseudobands have further parts, and each block of them has sums of its own.
  const double n_sums = 1.0 + (random != nullptr ? deck.pseudobands.blocks : 0.0),
               random_parts = random != nullptr ? static_cast<double>(field.zone.size()) : 0.0;
  bytes.results = n_sums * (n_parts + random_parts) * (2.0 * of_sum + 16.0 * n_p * n_l * n_l);
  bytes.sums += (n_sums - 1.0) * 4.0 * of_sum;
  // All couplings of a wave vector are made on the host, from one matrix of plane waves at a time.
  if (sides > 1.0) bytes.results += 16.0 * (n_p * n_b * n_b + n_pw * (n_pw + n_b) + row * n_b);
  return bytes;
}

}  // namespace quasi::gw
