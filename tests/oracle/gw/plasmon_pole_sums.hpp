#pragma once

#include <complex>
#include <vector>

/// Slow, literal forms of the GW sums. They use nothing of workers/.
namespace quasi::oracle::gw {

using Complex = std::complex<double>;

/// Plasmon-pole model of one q-point in the form of the equations. Energies in Ry.
struct PoleModel {
  int n_g = 0;
  std::vector<Complex> i_minus_epsinv;  ///< I_GG' = δ − ε⁻¹, [n_g][n_g]
  std::vector<double> pole_ry;  ///< ω̃_GG', [n_g][n_g]; infinity: static; 0: the element is skipped
  std::vector<double> coulomb;  ///< v̄(q+G'), [n_g]
};

struct Rules {
  double half_width_ry = 0.5 / 13.60569253;  ///< γ
  double max_delta_squared = 2.5e5;          ///< limit of δ², δ = ω̃/(x − ω̃)
  double screened_exchange_cut = 4.0;
};

/// SX − X and CH of one element, without the factors I and v̄.
struct Terms {
  double sx = 0.0;
  double ch = 0.0;
};

/// The split form of docs/theory/gw.md 6.2: two terms, with the established rules near poles.
Terms split_terms(double x_ry, double pole_ry, bool occupied, const Rules& rules);

/// Derivatives of the two terms with respect to x, each by its own formula.
Terms split_slopes(double x_ry, double pole_ry, bool occupied, const Rules& rules);

struct Sums {
  Complex sx, ch;
  double magnitude = 0.0;  ///< Σ of absolute terms (diagonal_slope alone)
};

/// Σ_n Σ_GG' M_n(G) F_n,GG'(x_n) M*_n(G') v̄(G') for one outer state.
/// @param products  M, [n_bands][n_g]; the occupation f_n weights occupied and empty forms
Sums diagonal(const PoleModel& model, const Rules& rules, const std::vector<Complex>& products,
              const std::vector<double>& x_ry, const std::vector<double>& occupation);

/// Computes the sum of `diagonal` with the derivatives of the terms.
Sums diagonal_slope(const PoleModel& model, const Rules& rules,
                    const std::vector<Complex>& products, const std::vector<double>& x_ry,
                    const std::vector<double>& occupation);

/// Terms and derivatives for an element with an imaginary pole ω̃ = i·pole: SX = −I ω̃²/(x²−ω̃²),
/// CH = ½ I ω̃/(x−ω̃) in complex numbers with the same rules. Derivatives use Richardson's central
/// differences of the terms on one side of every rule.
struct ComplexTerms {
  Complex sx, ch;
};
ComplexTerms imaginary_terms(double x_ry, double pole_ry, bool occupied, const Rules& rules);
ComplexTerms imaginary_slopes(double x_ry, double pole_ry, bool occupied, const Rules& rules);

/// Σ_n Σ_GG' M_ln(G) F_n,GG'(x_n) v̄(G') M*_mn(G'), with the split terms summed.
Complex off_diagonal(const PoleModel& model, const Rules& rules,
                     const std::vector<Complex>& products_l, const std::vector<Complex>& products_m,
                     const std::vector<double>& x_ry, const std::vector<double>& occupation);

/// Σ_p w_p M*_p(G) M_p(G'), [n_g][n_g].
std::vector<Complex> polarizability(int n_g, const std::vector<Complex>& products,
                                    const std::vector<Complex>& weight);

/// M_ln(G) = Σ_{G₁} c*_l(G₁) c_n(G₁ − G), indices modulo the box, by the plain double sum.
/// @param frequencies  plane waves of the coefficients, [n_pw][3]; the sphere is [n_g][3]
std::vector<Complex> pair_product(const std::vector<Complex>& left,
                                  const std::vector<Complex>& right,
                                  const std::vector<int>& left_frequencies,
                                  const std::vector<int>& right_frequencies,
                                  const std::vector<int>& sphere, const int box[3]);

}  // namespace quasi::oracle::gw
