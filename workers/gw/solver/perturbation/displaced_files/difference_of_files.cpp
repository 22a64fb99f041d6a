#include "workers/gw/solver/perturbation/displaced_files/difference_of_files.hpp"

#include <cmath>
#include <utility>

namespace quasi::gw {
namespace {

/// Returns the elements of [forth − back]/2h that are not 0, on the plane waves of the files.
PotentialElements difference_of(const PlaneWaveField& forth, const PlaneWaveField& back,
                                double step_bohr) {
  PotentialElements elements;
  const GIndex index(back.header.g);
  for (std::size_t i = 0; i < forth.header.g.size(); ++i) {
    const std::int32_t at = index.find(forth.header.g[i]);
    const Cplx value =
        forth.values[0][i] - (at < 0 ? Cplx{} : back.values[0][static_cast<std::size_t>(at)]);
    if (value != Cplx{}) elements.emplace_back(forth.header.g[i], value / (2.0 * step_bohr));
  }
  return elements;
}

}  // namespace

DisplacedProjectors::DisplacedProjectors(const DisplacedCalculation& from, std::size_t listed)
    : path_(from.folder / "VKB"), k_(from.projectors.k) {
  const Projectors& all = from.projectors;
  const auto count = [&](std::size_t atom) {
    return static_cast<std::size_t>(
        all.projectors_of_species[static_cast<std::size_t>(all.species[atom])]);
  };
  std::size_t first = 0;
  for (std::size_t atom = 0; atom < listed; ++atom) first += count(atom);
  n_projectors_ = count(listed);
  const auto edge = static_cast<std::size_t>(all.max_projectors);
  for (std::size_t p = 0; p < n_projectors_; ++p)
    for (std::size_t q = 0; q < n_projectors_; ++q)
      d_ry_.push_back(all.d_ry[(listed * edge + q) * edge + p]);
  for (std::size_t ik = 0; ik < k_.size(); ++ik) {
    const std::size_t n = all.g[ik].size();
    index_.emplace_back(all.g[ik]);
    n_waves_.push_back(n);
    const auto begin = all.beta[ik].begin() + static_cast<std::ptrdiff_t>(first * n);
    beta_.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(n_projectors_ * n));
  }
}

std::size_t DisplacedProjectors::point_of(const Vec3& coordinates, IVec3* shift) const {
  for (std::size_t ik = 0; ik < k_.size(); ++ik)
    if (nearest_lattice_point(coordinates - k_[ik], shift, 1e-5)) return ik;
  refuse_displaced(path_, "has no projectors for the k-point " + shown_vector(folded(coordinates)) +
                              " of its cell, to which a k-point of WFN belongs; list it in the "
                              "displaced calculation");
}

std::vector<Cplx> DisplacedProjectors::on_waves(std::size_t ik,
                                                const std::vector<IVec3>& waves) const {
  std::vector<Cplx> values(n_projectors_ * waves.size());
  for (std::size_t i = 0; i < waves.size(); ++i) {
    const std::int32_t at = index_[ik].find(waves[i]);
    if (at < 0)
      refuse_displaced(path_, "lacks the plane wave " + shown_vector(to_real(waves[i])) +
                                  " of its k-point " + shown_vector(k_[ik]) +
                                  ", which WFN has; use the cut-off of WFN");
    for (std::size_t p = 0; p < n_projectors_; ++p)
      values[p * waves.size() + i] = beta_[ik][p * n_waves_[ik] + static_cast<std::size_t>(at)];
  }
  return values;
}

void DisplacedProjectors::add(double factor, std::size_t ik, const std::vector<IVec3>& bra,
                              const std::vector<IVec3>& ket, std::vector<Cplx>& matrix) const {
  const std::vector<Cplx> left = on_waves(ik, bra), right = on_waves(ik, ket);
  std::vector<Cplx> applied(n_projectors_ * ket.size());
  for (std::size_t p = 0; p < n_projectors_; ++p)
    for (std::size_t q = 0; q < n_projectors_; ++q)
      for (std::size_t j = 0; j < ket.size(); ++j)
        applied[p * ket.size() + j] +=
            factor * d_ry_[p * n_projectors_ + q] * std::conj(right[q * ket.size() + j]);
  for (std::size_t i = 0; i < bra.size(); ++i)
    for (std::size_t p = 0; p < n_projectors_; ++p) {
      const Cplx beta = left[p * bra.size() + i];
      for (std::size_t j = 0; j < ket.size(); ++j)
        matrix[i * ket.size() + j] += beta * applied[p * ket.size() + j];
    }
}

DifferenceOfFiles::DifferenceOfFiles(const Wavefunctions& waves, const Supercell& supercell,
                                     const DisplacedCalculation& forth,
                                     const DisplacedCalculation& back, const Shift& up,
                                     double step_bohr)
    : supercell_(supercell),
      cell_(up.cell),
      step_bohr_(step_bohr),
      local_(difference_of(forth.potential, back.potential, step_bohr)),
      forth_(forth, up.listed),
      back_(back, up.listed) {
  if (forth.vxc && back.vxc) vxc_ = difference_of(*forth.vxc, *back.vxc, step_bohr);
  // This call adds nothing. It ends the job now if VKB lacks a k-point or a plane wave of WFN.
  std::vector<Cplx> none;
  for (std::size_t ik = 0; ik < waves.k.size(); ++ik)
    add_projectors(waves.k[ik], {}, waves.waves[ik].g, {}, none);
}

Cplx DifferenceOfFiles::factor_of(const Vec3& p) const {
  return std::polar(1.0 * supercell_.n_cells(), 2.0 * kPi * dot(p, to_real(cell_)));
}

PotentialElements DifferenceOfFiles::of_wave(const PotentialElements& difference,
                                             const Vec3& p) const {
  const IVec3 start = *supercell_.vector_of(p);
  const Cplx factor = factor_of(p);
  PotentialElements elements;
  for (const auto& [g, value] : difference)
    if (const auto of_cell = supercell_.cell_vector_of(g - start))
      elements.emplace_back(*of_cell, factor * value);
  return elements;
}

void DifferenceOfFiles::add_projectors(const Vec3& k, const Vec3& p, const std::vector<IVec3>& bra,
                                       const std::vector<IVec3>& ket,
                                       std::vector<Cplx>& matrix) const {
  const IVec3 start = *supercell_.vector_of(p);
  std::vector<Cplx> sum(matrix.size());
  for (const auto& [projectors, sign] : {std::pair{&forth_, 1.0}, std::pair{&back_, -1.0}}) {
    IVec3 shift{};
    const std::size_t ik = projectors->point_of(supercell_.coordinates_of(k), &shift);
    std::vector<IVec3> left, right;
    for (const IVec3& g : bra) left.push_back(supercell_.coordinates_of(g) + start + shift);
    for (const IVec3& g : ket) right.push_back(supercell_.coordinates_of(g) + shift);
    projectors->add(sign / (2.0 * step_bohr_), ik, left, right, sum);
  }
  const Cplx factor = factor_of(p);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] += factor * sum[i];
}

}  // namespace quasi::gw
