#include "tests/oracle/mosfet/transport_step.hpp"

#include <cmath>

namespace quasi::oracle {
namespace {

const double kPi = std::acos(-1.0);

// Textbook WENO-5 with explicit weights; v holds the five values from upwind to downwind.
double weno(const double v[5], double epsilon) {
  const double q[3] = {(2 * v[0] - 7 * v[1] + 11 * v[2]) / 6, (-v[1] + 5 * v[2] + 2 * v[3]) / 6,
                       (2 * v[2] + 5 * v[3] - v[4]) / 6};
  const double beta[3] = {
      13.0 / 12 * std::pow(v[0] - 2 * v[1] + v[2], 2) +
          0.25 * std::pow(v[0] - 4 * v[1] + 3 * v[2], 2),
      13.0 / 12 * std::pow(v[1] - 2 * v[2] + v[3], 2) + 0.25 * std::pow(v[1] - v[3], 2),
      13.0 / 12 * std::pow(v[2] - 2 * v[3] + v[4], 2) +
          0.25 * std::pow(3 * v[2] - 4 * v[3] + v[4], 2)};
  const double d[3] = {0.1, 0.6, 0.3};
  double sum = 0, value = 0;
  for (int r = 0; r < 3; ++r) {
    const double a = d[r] / std::pow(epsilon + beta[r], 2);
    sum += a;
    value += a * q[r];
  }
  return value / sum;
}

class Step {
 public:
  explicit Step(const Transport& t) : t_(t), dphi_(2 * kPi / t.nphi) {}

  std::vector<double> rhs(const std::vector<double>& f) const {
    std::vector<double> out(f.size(), 0.0);
    for (int v = 0; v < t_.valleys; ++v)
      for (int p = 0; p < t_.subbands; ++p)
        for (int i = 0; i < t_.nx; ++i)
          for (int l = 0; l < t_.nw; ++l)
            for (int m = 0; m < t_.nphi; ++m) {
              double value = -(x_flux(f, v, p, i, l, m) - x_flux(f, v, p, i - 1, l, m)) / t_.dx;
              value -= (w_flux(f, v, p, i, l, m) - w_flux(f, v, p, i, l - 1, m)) / t_.dw;
              value -= phi_derivative(f, v, p, i, l, m);
              out[at(v, p, i, l, m)] = value;
            }
    for (int i = 0; i < t_.nx; ++i) scatter(f, i, &out);
    return out;
  }

 private:
  std::size_t at(int v, int p, int i, int l, int m) const {
    return (((static_cast<std::size_t>(v) * t_.subbands + p) * t_.nx + i) * t_.nw + l) * t_.nphi +
           (m % t_.nphi + t_.nphi) % t_.nphi;
  }
  double w(double l) const { return (l + 0.5) * t_.dw; }
  double cosine(int m) const {
    m = (m % t_.nphi + t_.nphi) % t_.nphi;
    return 4 * m == t_.nphi || 4 * m == 3 * t_.nphi ? 0.0 : std::cos(m * dphi_);
  }
  double sine(int m) const {
    m = (m % t_.nphi + t_.nphi) % t_.nphi;
    return m == 0 || 2 * m == t_.nphi ? 0.0 : std::sin(m * dphi_);
  }
  double speed(int v, double e) const {
    return std::sqrt(2 * e * (1 + t_.alpha * e)) / (std::sqrt(t_.mx[v]) * (1 + 2 * t_.alpha * e));
  }
  double jacobian(int v, double e) const {
    return std::sqrt(t_.mx[v] * t_.my[v]) * (1 + 2 * t_.alpha * e);
  }
  double epsilon(int v, int p, int i) const {
    return t_.energy[(static_cast<std::size_t>(v) * t_.subbands + p) * t_.nx + i];
  }
  double slope(int v, int p, int i) const {
    const auto e = [&](int k) { return epsilon(v, p, k); };
    const int n = t_.nx;
    if (i == 0) return (-3 * e(0) + 4 * e(1) - e(2)) / (2 * t_.dx);
    if (i == n - 1) return (3 * e(n - 1) - 4 * e(n - 2) + e(n - 3)) / (2 * t_.dx);
    if (i == 1 || i == n - 2) return (e(i + 1) - e(i - 1)) / (2 * t_.dx);
    return (e(i - 2) - 8 * e(i - 1) + 8 * e(i + 1) - e(i + 2)) / (12 * t_.dx);
  }
  double value(const std::vector<double>& f, int v, int p, int i, int l, int m) const {
    if (i < 0)
      return cosine(m) > 0 ? t_.inflow_source[(v * t_.subbands + p) * t_.nw + l]
                           : f[at(v, p, 0, l, m)];
    if (i >= t_.nx)
      return cosine(m) < 0 ? t_.inflow_drain[(v * t_.subbands + p) * t_.nw + l]
                           : f[at(v, p, t_.nx - 1, l, m)];
    return f[at(v, p, i, l, m)];
  }
  // Flux at i+½.
  double x_flux(const std::vector<double>& f, int v, int p, int i, int l, int m) const {
    const double a1 = speed(v, w(l)) * cosine(m);
    if (a1 == 0) return 0;
    double s[5];
    for (int k = 0; k < 5; ++k) s[k] = value(f, v, p, a1 > 0 ? i - 2 + k : i + 3 - k, l, m);
    return a1 * weno(s, t_.weno_epsilon);
  }
  double speed_value(const std::vector<double>& f, int v, int p, int i, int l, int m) const {
    if (l >= t_.nw) return 0;
    if (l < 0) return speed(v, w(-1 - l)) * f[at(v, p, i, -1 - l, m + t_.nphi / 2)];
    return speed(v, w(l)) * f[at(v, p, i, l, m)];
  }
  double one_sided_w_flux(const std::vector<double>& f, int v, int p, int i, int l, int m) const {
    const double wind = -slope(v, p, i) * cosine(m);
    if (wind == 0) return 0;
    double s[5];
    for (int k = 0; k < 5; ++k) s[k] = speed_value(f, v, p, i, wind > 0 ? l - 2 + k : l + 3 - k, m);
    return wind * weno(s, t_.weno_epsilon);
  }
  // Flux at w_{ℓ+½}; at w = 0 the exchange between φ and φ+π is made antisymmetric.
  double w_flux(const std::vector<double>& f, int v, int p, int i, int l, int m) const {
    if (l == t_.nw - 1) return 0;
    if (l == -1)
      return 0.5 * (one_sided_w_flux(f, v, p, i, -1, m) -
                    one_sided_w_flux(f, v, p, i, -1, m + t_.nphi / 2));
    return one_sided_w_flux(f, v, p, i, l, m);
  }
  // Flux at m+½ on 0 < φ < π, where sin φ > 0, with upwinding by the sign of ε'. On π < φ < 2π it
  // follows from F(−φ) = −F(φ).
  double phi_flux(const std::vector<double>& f, int v, int p, int i, int l, int m) const {
    m = (m % t_.nphi + t_.nphi) % t_.nphi;
    if (2 * m >= t_.nphi) return -phi_flux(f, v, p, i, l, t_.nphi - 1 - m);
    const double e = slope(v, p, i);
    double s[5];
    for (int k = 0; k < 5; ++k) {
      const int n = e > 0 ? m - 2 + k : m + 3 - k;
      s[k] = sine(n) * f[at(v, p, i, l, n)];
    }
    const double k_w = w(l) * (1 + t_.alpha * w(l));
    return e / (std::sqrt(t_.mx[v]) * std::sqrt(2 * k_w)) * weno(s, t_.weno_epsilon);
  }
  double phi_derivative(const std::vector<double>& f, int v, int p, int i, int l, int m) const {
    return (phi_flux(f, v, p, i, l, m) - phi_flux(f, v, p, i, l, m - 1)) / dphi_;
  }

  // Links between low and high states, added pair by pair as the scheme defines them.
  void scatter(const std::vector<double>& f, int i, std::vector<double>* out) const {
    const int states = t_.valleys * t_.subbands;
    std::vector<double> sum(static_cast<std::size_t>(states) * t_.nw, 0.0), gain(sum), loss(sum);
    for (int a = 0; a < states; ++a)
      for (int l = 0; l < t_.nw; ++l)
        for (int m = 0; m < t_.nphi; ++m)
          sum[a * t_.nw + l] += dphi_ * f[at(a / t_.subbands, a % t_.subbands, i, l, m)];
    if (!t_.elastic.empty())
      for (int a = 0; a < states; ++a)
        for (int l = 0; l < t_.nw; ++l) {
          const double rate =
              t_.elastic[(static_cast<std::size_t>(a / t_.subbands) * t_.nx + i) * t_.nw + l];
          for (int m = 0; m < t_.nphi; ++m) {
            const std::size_t k = at(a / t_.subbands, a % t_.subbands, i, l, m);
            (*out)[k] += rate * (sum[a * t_.nw + l] / (2 * kPi) - f[k]);
          }
        }
    for (const auto& process : t_.processes)
      for (int low = 0; low < states; ++low)
        for (int high = 0; high < states; ++high) {
          const int vl = low / t_.subbands, vh = high / t_.subbands;
          if ((vl != vh) != process.between_pairs) continue;
          const double c = process.coupling * (process.elastic ? 0.5 : 1.0) *
                           t_.overlap[(static_cast<std::size_t>(low) * states + high) * t_.nx + i];
          const double up = process.elastic ? 1.0 : process.occupation;
          const double down = process.elastic ? 1.0 : process.occupation + 1.0;
          for (int l = 0; l < t_.nw; ++l) {
            const double gamma = w(l) + epsilon(vl, low % t_.subbands, i) -
                                 epsilon(vh, high % t_.subbands, i) + process.energy;
            if (gamma < 0) continue;
            int nodes[2];
            double b[2];
            if (gamma < 0.5 * t_.dw) {
              nodes[0] = nodes[1] = 0;
              b[0] = 1;
              b[1] = 0;
            } else {
              nodes[0] = static_cast<int>(std::floor(gamma / t_.dw - 0.5));
              nodes[1] = nodes[0] + 1;
              if (nodes[1] > t_.nw - 1) continue;
              b[1] = gamma / t_.dw - 0.5 - nodes[0];
              b[0] = 1 - b[1];
            }
            if (t_.pauli) {
              blocked_link(f, i, vl, low % t_.subbands, l, vh, high % t_.subbands, nodes, b, gamma,
                           c * up, c * down, &sum[low * t_.nw], &sum[high * t_.nw], out);
              continue;
            }
            for (int k = 0; k < 2; ++k) {
              const int h = nodes[k];
              const double g = jacobian(vh, gamma) * std::exp(-gamma / t_.kt) /
                               (jacobian(vh, w(h)) * std::exp(-w(h) / t_.kt));
              gain[low * t_.nw + l] +=
                  c * down * jacobian(vl, w(l)) * b[k] * g * sum[high * t_.nw + h];
              loss[high * t_.nw + h] += 2 * kPi * c * down * jacobian(vl, w(l)) * b[k] * g;
              gain[high * t_.nw + h] += c * up * b[k] * jacobian(vh, gamma) * sum[low * t_.nw + l];
            }
            loss[low * t_.nw + l] += 2 * kPi * c * up * jacobian(vh, gamma);
          }
        }
    for (int a = 0; a < states; ++a)
      for (int l = 0; l < t_.nw; ++l)
        for (int m = 0; m < t_.nphi; ++m) {
          const std::size_t k = at(a / t_.subbands, a % t_.subbands, i, l, m);
          (*out)[k] += gain[a * t_.nw + l] - loss[a * t_.nw + l] * f[k];
        }
  }

  // One link with blocking: its rates up and down, spread over the angles of either end.
  void blocked_link(const std::vector<double>& f, int i, int vl, int pl, int l, int vh, int ph,
                    const int nodes[2], const double b[2], double gamma, double up, double down,
                    const double* sum_low, const double* sum_high, std::vector<double>* out) const {
    const double full_l = t_.states * jacobian(vl, w(l)), f_l = sum_low[l] / (2 * kPi * full_l);
    double f_h[2], share[2], odds = 0;
    for (int k = 0; k < 2; ++k) {
      f_h[k] = sum_high[nodes[k]] / (2 * kPi * t_.states * jacobian(vh, w(nodes[k])));
      share[k] = b[k] * f_h[k] / (1 - f_h[k]) * std::exp(-(gamma - w(nodes[k])) / t_.kt);
      odds += share[k];
    }
    const double f_gamma = odds / (1 + odds);
    const double c = jacobian(vl, w(l)) * jacobian(vh, gamma) * 2 * kPi * t_.states;
    const double emitted = c * down * f_gamma * (1 - f_l), absorbed = c * up * f_l * (1 - f_gamma);
    for (int m = 0; m < t_.nphi; ++m) {
      const std::size_t low = at(vl, pl, i, l, m);
      const double here = f[low] / full_l;
      (*out)[low] += emitted * (1 - here) / (1 - f_l) - absorbed * here / f_l;
      for (int k = 0; k < 2; ++k) {
        if (b[k] == 0) continue;
        const std::size_t high = at(vh, ph, i, nodes[k], m);
        const double there = f[high] / (t_.states * jacobian(vh, w(nodes[k])));
        (*out)[high] += b[k] * absorbed * (1 - there) / (1 - f_h[k]) -
                        share[k] / odds * emitted * there / f_h[k];
      }
    }
  }

  const Transport& t_;
  double dphi_;
};

}  // namespace

std::vector<double> advance(const Transport& t, const std::vector<double>& pdf, double dt) {
  const Step step(t);
  const std::vector<double> l0 = step.rhs(pdf);
  std::vector<double> f1(pdf), f2(pdf), f3(pdf);
  for (std::size_t k = 0; k < pdf.size(); ++k) f1[k] = pdf[k] + dt * l0[k];
  const std::vector<double> l1 = step.rhs(f1);
  for (std::size_t k = 0; k < pdf.size(); ++k) f2[k] = 0.75 * pdf[k] + 0.25 * (f1[k] + dt * l1[k]);
  const std::vector<double> l2 = step.rhs(f2);
  for (std::size_t k = 0; k < pdf.size(); ++k) f3[k] = pdf[k] / 3 + 2.0 / 3 * (f2[k] + dt * l2[k]);
  return f3;
}

}  // namespace quasi::oracle
