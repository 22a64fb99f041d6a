#pragma once

#include <array>
#include <cmath>
#include <initializer_list>

namespace quasi::model {

/// A number of the algebra R[ε1,ε2,ε3,ε4] with every εi² = 0: sixteen coefficients, one for each
/// subset of the four units. A function evaluated at x + ε1 e_a + ε2 e_b + ε3 e_c + ε4 e_d has the
/// mixed derivative ∂⁴f/∂a∂b∂c∂d as the coefficient of ε1ε2ε3ε4, exact to rounding. There is no
/// step width, and repeated indices (a = b) need no special treatment.
class Nilpotent {
 public:
  static constexpr int kUnits = 4;
  static constexpr unsigned kAll = (1u << kUnits) - 1;

  Nilpotent(double value = 0.0) { coefficient_[0] = value; }  // NOLINT: numbers convert

  double value() const { return coefficient_[0]; }
  /// Coefficient of the product of the units whose bits are set in `units`.
  double derivative(unsigned units) const { return coefficient_[units]; }
  /// Adds the unit εi to this variable.
  void seed(int unit) { coefficient_[1u << unit] += 1.0; }

  friend Nilpotent operator+(Nilpotent a, const Nilpotent& b) {
    for (unsigned s = 0; s <= kAll; ++s) a.coefficient_[s] += b.coefficient_[s];
    return a;
  }
  friend Nilpotent operator-(Nilpotent a, const Nilpotent& b) {
    for (unsigned s = 0; s <= kAll; ++s) a.coefficient_[s] -= b.coefficient_[s];
    return a;
  }
  friend Nilpotent operator*(const Nilpotent& a, const Nilpotent& b) {
    Nilpotent c;
    for (unsigned s = 0; s <= kAll; ++s) {
      // Over all subsets t of s, from s itself down to the empty one.
      double sum = a.coefficient_[0] * b.coefficient_[s];
      for (unsigned t = s; t != 0; t = (t - 1) & s)
        sum += a.coefficient_[t] * b.coefficient_[s ^ t];
      c.coefficient_[s] = sum;
    }
    return c;
  }

  /// f(x) from the derivatives f⁽ⁿ⁾(x.value()), n = 0…4; the series ends there because x has four
  /// nilpotent units.
  friend Nilpotent compose(const Nilpotent& x, const std::array<double, 5>& derivatives) {
    Nilpotent small = x;
    small.coefficient_[0] = 0.0;
    Nilpotent result(derivatives[0]);
    Nilpotent power(1.0);
    double factorial = 1.0;
    for (int n = 1; n <= kUnits; ++n) {
      power = power * small;
      factorial *= n;
      result = result + power * Nilpotent(derivatives[n] / factorial);
    }
    return result;
  }
  friend Nilpotent exp(const Nilpotent& x) {
    const double e = std::exp(x.value());
    return compose(x, {e, e, e, e, e});
  }
  /// x^p for x > 0 and any real p.
  friend Nilpotent pow(const Nilpotent& x, double p) {
    std::array<double, 5> derivatives{};
    double factor = 1.0;
    for (int n = 0; n <= kUnits; ++n) {
      derivatives[n] = factor * std::pow(x.value(), p - n);
      factor *= p - n;
    }
    return compose(x, derivatives);
  }
  friend Nilpotent inverse(const Nilpotent& x) {
    const double r = 1.0 / x.value();
    return compose(x, {r, -r * r, 2 * r * r * r, -6 * r * r * r * r, 24 * r * r * r * r * r});
  }
  friend Nilpotent operator/(const Nilpotent& a, const Nilpotent& b) { return a * inverse(b); }

 private:
  std::array<double, 1u << kUnits> coefficient_{};
};

/// √x for x > 0.
inline Nilpotent sqrt(const Nilpotent& x) { return pow(x, 0.5); }

}  // namespace quasi::model
