#include "workers/thermal/kernels/four_phonon/evaluate_4ph_cpu.hpp"

namespace quasi::thermal {

namespace {

/// Width of a block of values: two vector registers.
constexpr int kLanes64 = 8, kLanes32 = 16;

}  // namespace

Evaluator4phCpu::Evaluator4phCpu(const Tables4ph& tables, Precision precision)
    : tables_(tables),
      site_(static_cast<std::size_t>(tables.n_triples) * 3),
      pair_(static_cast<std::size_t>(tables.n_pairs) * 9),
      pair32_(precision == Precision::kMixed ? pair_.size() : 0) {}

void Evaluator4phCpu::set_pair(std::int64_t row, std::int32_t mode1, bool conjugate) {
  const Tables4ph& t = tables_;
  const Complex<double>* e = t.eigenvector + static_cast<std::int64_t>(mode1) * t.n_branches;
  const Complex<double>* phase =
      t.phase + static_cast<std::int64_t>(mode1 / t.n_branches) * t.n_cells;
  for (int triple = 0; triple < t.n_triples; ++triple)
    for (int b = 0; b < 3; ++b) {
      const Complex<double> value = phase[t.triple_cell[triple]] * e[3 * t.triple_atom[triple] + b];
      site_[static_cast<std::size_t>(3 * triple + b)] = conjugate ? conj(value) : value;
    }
  const Complex<double>* contracted = t.contracted + row * t.n_triples * 27;
  for (int pair = 0; pair < t.n_pairs; ++pair) {
    double re[9] = {};
    double im[9] = {};
    for (int triple = t.pair_begin[pair]; triple < t.pair_begin[pair + 1]; ++triple)
      for (int b = 0; b < 3; ++b) {
        const Complex<double> s = site_[static_cast<std::size_t>(3 * triple + b)];
        const Complex<double>* c = contracted + 27 * static_cast<std::int64_t>(triple) + 9 * b;
        for (int x = 0; x < 9; ++x) {
          re[x] += s.re * c[x].re - s.im * c[x].im;
          im[x] += s.re * c[x].im + s.im * c[x].re;
        }
      }
    for (int x = 0; x < 9; ++x) pair_[static_cast<std::size_t>(9 * pair + x)] = {re[x], im[x]};
  }
  for (std::size_t x = 0; x < pair32_.size(); ++x)
    pair32_[x] = {static_cast<float>(pair_[x].re), static_cast<float>(pair_[x].im)};
}

void Evaluator4phCpu::squared_elements(const Found4ph* found, std::int64_t n, bool conjugate,
                                       double* squared) const {
  if (pair32_.empty())
    squared_elements_in<double, kLanes64>(pair_, found, n, conjugate, squared);
  else
    squared_elements_in<float, kLanes32>(pair32_, found, n, conjugate, squared);
}

template <typename Real, int kLanes>
void Evaluator4phCpu::squared_elements_in(const std::vector<Complex<Real>>& pairs,
                                          const Found4ph* found, std::int64_t n, bool conjugate,
                                          double* squared) const {
  using Lanes = Real[kLanes];
  const auto rounded = [](Complex<double> x) {
    return Complex<Real>{static_cast<Real>(x.re), static_cast<Real>(x.im)};
  };
  const Tables4ph& t = tables_;
  const int nb = t.n_branches;
  const Real sign = conjugate ? -1 : 1;
  for (std::int64_t first = 0; first < n; first += kLanes) {
    const Complex<double>* e2[kLanes];
    const Complex<double>* e3[kLanes];
    const Complex<double>* phase[kLanes];
    for (int lane = 0; lane < kLanes;
         ++lane) {  // the last batch is filled up with its last process
      const Found4ph& f = found[first + lane < n ? first + lane : n - 1];
      e2[lane] = t.eigenvector + static_cast<std::int64_t>(f.mode2) * nb;
      e3[lane] = t.eigenvector + static_cast<std::int64_t>(f.mode3) * nb;
      phase[lane] = t.phase + static_cast<std::int64_t>(f.mode2 / nb) * t.n_cells;
    }
    Lanes v_re = {};
    Lanes v_im = {};
    int pair = 0;
    while (pair < t.n_pairs) {
      const int fourth = t.pair_fourth[pair];
      Lanes w_re[3] = {};
      Lanes w_im[3] = {};
      for (; pair < t.n_pairs && t.pair_fourth[pair] == fourth; ++pair) {
        const int third = 3 * t.pair_third[pair];
        const int cell = t.pair_cell[pair];
        Lanes u_re[3];
        Lanes u_im[3];
        for (int lane = 0; lane < kLanes; ++lane) {
          const Complex<Real> f = rounded(phase[lane][cell]);
          for (int b = 0; b < 3; ++b) {
            const Complex<Real> e = rounded(e2[lane][third + b]);
            u_re[b][lane] = f.re * e.re - f.im * e.im;
            u_im[b][lane] = sign * (f.re * e.im + f.im * e.re);
          }
        }
        const Complex<Real>* a = &pairs[static_cast<std::size_t>(9 * pair)];
        for (int b = 0; b < 3; ++b)
          for (int c = 0; c < 3; ++c) {
            const Real a_re = a[3 * b + c].re;
            const Real a_im = a[3 * b + c].im;
            for (int lane = 0; lane < kLanes; ++lane) {
              w_re[c][lane] += u_re[b][lane] * a_re - u_im[b][lane] * a_im;
              w_im[c][lane] += u_re[b][lane] * a_im + u_im[b][lane] * a_re;
            }
          }
      }
      for (int c = 0; c < 3; ++c)
        for (int lane = 0; lane < kLanes; ++lane) {
          const Complex<Real> e = rounded(e3[lane][3 * fourth + c]);
          v_re[lane] += w_re[c][lane] * e.re + w_im[c][lane] * e.im;
          v_im[lane] += w_im[c][lane] * e.re - w_re[c][lane] * e.im;
        }
    }
    for (int lane = 0; lane < kLanes && first + lane < n; ++lane)
      squared[first + lane] =
          squared_of_sum_4ph(t, {static_cast<double>(v_re[lane]), static_cast<double>(v_im[lane])});
  }
}

}  // namespace quasi::thermal
