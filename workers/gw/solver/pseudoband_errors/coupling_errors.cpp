#include "workers/gw/solver/pseudoband_errors/coupling_errors.hpp"

#include "workers/gw/solver/pseudoband_errors/statistical_errors.hpp"

namespace quasi::gw {
namespace {

/// Returns the number of blocks of random vectors in the elements.
std::size_t blocks_of(const DisplacementElements& found) {
  return found.at.empty() || found.at[0].empty() ? 0 : found.at[0][0].sigma_without.size();
}

/// Sets the errors of one coupling.
/// @param without  elements without one block of random vectors, [block]
/// @param index    number of the coupling in each of them
void set_errors(const std::vector<ModeElements>& without, std::size_t index, ModeCoupling& of) {
  std::vector<double> sigma, ratio;
  for (const ModeElements& rest : without) {
    sigma.push_back(rest.couplings[index].sigma_ev);
    if (of.ratio) ratio.push_back(rest.couplings[index].ratio.value());
  }
  const JackknifeEstimate of_sigma = jackknife(of.sigma_ev, sigma);
  of.sigma_error = {of_sigma.value, of_sigma.half_width};
  if (!of.ratio) return;
  const JackknifeEstimate of_ratio = jackknife(*of.ratio, ratio);
  of.ratio_error = {of_ratio.value, of_ratio.half_width};
}

}  // namespace

ComplexEstimates jackknife_of(const std::vector<Cplx>& pooled,
                              const std::vector<std::vector<Cplx>>& without) {
  ComplexEstimates found;
  for (std::size_t i = 0; i < pooled.size(); ++i) {
    std::vector<double> real, imaginary;
    for (const std::vector<Cplx>& rest : without) {
      real.push_back(rest[i].real());
      imaginary.push_back(rest[i].imag());
    }
    const JackknifeEstimate re = jackknife(pooled[i].real(), real),
                            im = jackknife(pooled[i].imag(), imaginary);
    found.value.emplace_back(re.value, im.value);
    found.half_width.emplace_back(re.half_width, im.half_width);
  }
  return found;
}

void add_mode_errors(const DisplacementElements& displaced, const Wavefunctions& waves,
                     ModeElements& phonons) {
  std::vector<ModeElements> without;
  for (std::size_t block = 0; block < blocks_of(displaced); ++block)
    without.push_back(mode_elements(phonons.modes, elements_without(displaced, block), waves));
  if (without.empty()) return;
  for (std::size_t mode = 0; mode < phonons.at.size(); ++mode)
    for (std::size_t k = 0; k < phonons.at[mode].size(); ++k) {
      std::vector<std::vector<Cplx>> rest;
      for (const ModeElements& of : without) rest.push_back(of.at[mode][k].sigma_ev);
      ModeElementsAtK& at = phonons.at[mode][k];
      ComplexEstimates found = jackknife_of(at.sigma_ev, rest);
      at.sigma_estimate_ev = std::move(found.value);
      at.sigma_half_width_ev = std::move(found.half_width);
    }
  for (std::size_t i = 0; i < phonons.couplings.size(); ++i)
    set_errors(without, i, phonons.couplings[i]);
}

}  // namespace quasi::gw
