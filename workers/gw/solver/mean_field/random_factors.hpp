#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <span>

#include "workers/backend/philox.hpp"
#include "workers/gw/model/mean_field.hpp"

// Parts that pseudobands of given states and those of polynomials of H share.
namespace quasi::gw {

/// Second key of the random numbers, so that no other use of an equal seed shares them.
inline constexpr std::uint32_t kKeyOfPseudobands = 0x70736575u;

/// Makes the random factors θ of one spin and k-point.
class RandomFactors {
 public:
  /// @param use  0, 1: PseudobandUse; 2: complement_vectors()
  RandomFactors(int seed, std::uint32_t use, int spin, int ik, bool real)
      : seed_(static_cast<std::uint32_t>(seed)),
        ik_(static_cast<std::uint32_t>(ik)),
        stream_(use < 2 ? 2 * static_cast<std::uint32_t>(spin) + use
                        : 4 + static_cast<std::uint32_t>(spin)),
        real_(real) {}
  /// Returns θ of one vector and one state, or one plane wave.
  Cplx at(int vector, int state) const {
    const Philox random =
        Philox::at(static_cast<std::uint32_t>(state), static_cast<std::uint32_t>(vector), ik_,
                   stream_, seed_, kKeyOfPseudobands);
    if (real_) return (random.word[0] & 1u) != 0 ? 1.0 : -1.0;
    return std::polar(1.0, 2.0 * kPi * random.unit());
  }

 private:
  std::uint32_t seed_, ik_, stream_;
  bool real_;
};

/// Calls `visit(spin, ik)` for every spin and k-point.
template <class Visit>
void for_each_point(const Wavefunctions& waves, const Visit& visit) {
  for (int spin = 0; spin < waves.header.n_spins; ++spin)
    for (int ik = 0; ik < waves.n_k(); ++ik) visit(spin, ik);
}

/// True if all coefficients are real.
inline bool is_real(std::span<const Cplx> coefficients) {
  bool real = true;
#pragma omp parallel for schedule(static) reduction(&& : real) if (coefficients.size() > 1 << 20)
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    real = real && coefficients[i].imag() == 0.0;
  return real;
}

}  // namespace quasi::gw
