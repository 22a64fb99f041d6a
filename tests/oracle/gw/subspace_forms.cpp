#include "tests/oracle/gw/subspace_forms.hpp"

namespace quasi::oracle::gw {

Complex SubspaceMatrix::element(int g, int h) const {
  Complex w = share * rest[static_cast<std::size_t>(g * n + h)];
  if (g == h) w += diagonal[static_cast<std::size_t>(g)];
  for (int a = 0; a < n_b; ++a)
    for (int b = 0; b < n_b; ++b)
      w += basis[static_cast<std::size_t>(g * n_b + a)] *
           inner[static_cast<std::size_t>(a * n_b + b)] *
           std::conj(basis[static_cast<std::size_t>(h * n_b + b)]);
  return w;
}

Complex form(const SubspaceMatrix& w, const Complex* m_l, const Complex* m_m) {
  Complex sum;
  for (int g = 0; g < w.n; ++g)
    for (int h = 0; h < w.n; ++h) sum += m_l[g] * w.element(g, h) * std::conj(m_m[h]);
  return sum;
}

}  // namespace quasi::oracle::gw
