#include "workers/mosfet/solver/beam/small_signal/rational_sweep.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "workers/backend/error.hpp"

namespace quasi::mosfet {
namespace {

using Complex = std::complex<double>;
using Values = std::vector<Complex>;

double largest_of(const Values& values) {
  double largest = 0.0;
  for (const Complex& value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// Returns the largest difference of two samples over the largest value of the second one.
double deviation(const Values& a, const Values& b) {
  double difference = 0.0;
  for (std::size_t n = 0; n < a.size(); ++n)
    difference = std::max(difference, std::abs(a[n] - b[n]));
  return difference > 0.0 ? difference / largest_of(b) : 0.0;
}

/// Samples at a frequency, which may be negative.
struct Sample {
  double at = 0;
  Values values;
};

/// Rational function Σ w_m f_m/(x − x_m) / Σ w_m/(x − x_m).
class Barycentric {
 public:
  /// Chooses support points among the samples, worst first, until all samples are met (AAA
  /// [nakatsukasa2018]).
  Barycentric(const std::vector<Sample>& samples, double tolerance) {
    std::vector<char> used(samples.size(), 0);
    while (support_.size() < samples.size()) {
      std::size_t worst = samples.size();
      double error = support_.empty() ? -1.0 : tolerance;
      for (std::size_t n = 0; n < samples.size(); ++n) {
        if (used[n] != 0) continue;
        const double here = support_.empty() ? largest_of(samples[n].values)
                                             : deviation(at(samples[n].at), samples[n].values);
        if (here > error) {
          worst = n;
          error = here;
        }
      }
      if (worst == samples.size()) return;
      used[worst] = 1;
      support_.push_back(samples[worst]);
      find_weights(samples, used);
    }
  }

  Values at(double x) const {
    Values sum(support_.front().values.size(), 0.0);
    Complex weights = 0.0;
    for (std::size_t m = 0; m < support_.size(); ++m) {
      if (x == support_[m].at) return support_[m].values;
      const Complex factor = weight_[m] / (x - support_[m].at);
      weights += factor;
      for (std::size_t n = 0; n < sum.size(); ++n) sum[n] += factor * support_[m].values[n];
    }
    for (Complex& value : sum) value /= weights;
    return sum;
  }

 private:
  // The weights are the right singular vector of the smallest singular value of Loewner's matrix.
  void find_weights(const std::vector<Sample>& samples, const std::vector<char>& used) {
    const std::size_t columns = support_.size();
    std::vector<Complex> loewner;
    for (std::size_t n = 0; n < samples.size(); ++n) {
      if (used[n] != 0) continue;
      const double scale = largest_of(samples[n].values);
      for (std::size_t k = 0; k < samples[n].values.size(); ++k)
        for (const Sample& support : support_)
          loewner.push_back((samples[n].values[k] - support.values[k]) /
                            (scale * (samples[n].at - support.at)));
    }
    weight_.assign(columns, 1.0);
    const auto rows = static_cast<lapack_int>(loewner.size() / columns),
               width = static_cast<lapack_int>(columns);
    if (rows == 0 || columns == 1) return;
    std::vector<double> singular(std::min(loewner.size() / columns, columns)),
        work(std::max<std::size_t>(1, singular.size()));
    std::vector<Complex> right(columns * columns);
    const int info = LAPACKE_zgesvd(
        LAPACK_ROW_MAJOR, 'N', 'A', rows, width,
        reinterpret_cast<lapack_complex_double*>(loewner.data()), width, singular.data(), nullptr,
        rows, reinterpret_cast<lapack_complex_double*>(right.data()), width, work.data());
    if (info != 0)
      throw NotConverged("small signal: the interpolation in frequency failed, zgesvd returned " +
                         std::to_string(info));
    for (std::size_t m = 0; m < columns; ++m)
      weight_[m] = std::conj(right[(columns - 1) * columns + m]);
  }

  std::vector<Sample> support_;
  std::vector<Complex> weight_;
};

// Returns the function through the computed frequencies and their negatives.
Barycentric interpolation(const std::map<std::size_t, Values>& known,
                          const std::vector<double>& frequencies, double tolerance) {
  std::vector<Sample> samples;
  const double unit = frequencies.back() > 0.0 ? frequencies.back() : 1.0;
  for (const auto& [n, values] : known) {
    samples.push_back({frequencies[n] / unit, values});
    if (!(frequencies[n] > 0.0)) continue;
    Values mirrored(values);
    for (Complex& value : mirrored) value = std::conj(value);
    samples.push_back({-frequencies[n] / unit, mirrored});
  }
  return {samples, 0.1 * tolerance};
}

}  // namespace

SweptValues rational_sweep(const std::vector<double>& frequencies,
                           const std::function<std::vector<std::complex<double>>(double)>& solve,
                           double tolerance) {
  constexpr int kPredictions = 2;
  const std::size_t count = frequencies.size();
  std::map<std::size_t, Values> known;
  for (const std::size_t n : {std::size_t{0}, count / 2, count - 1})
    if (!known.contains(n)) known[n] = solve(frequencies[n]);
  const double unit = frequencies.back() > 0.0 ? frequencies.back() : 1.0;
  std::vector<Values> last;
  int predicted = 0;
  for (;;) {
    const Barycentric function = interpolation(known, frequencies, tolerance);
    std::vector<Values> now(count);
    std::size_t worst = count;
    double largest = -1.0, gap = -1.0;
    for (std::size_t n = 0; n < count; ++n) {
      const auto exact = known.find(n);
      now[n] = exact != known.end() ? exact->second : function.at(frequencies[n] / unit);
      if (exact != known.end()) continue;
      const double change = last.empty() ? 1.0 : deviation(last[n], now[n]);
      // If changes are equal, the frequency farthest from all solved ones is solved next.
      const auto after = known.lower_bound(n);
      const double wide =
          static_cast<double>(std::min(n - std::prev(after)->first, after->first - n));
      if (change > largest || (change == largest && wide > gap)) {
        worst = n;
        largest = change;
        gap = wide;
      }
    }
    if (worst == count || (predicted >= kPredictions && largest <= tolerance)) {
      return {std::move(now), static_cast<int>(known.size())};
    }
    known[worst] = solve(frequencies[worst]);
    predicted = deviation(now[worst], known[worst]) <= tolerance ? predicted + 1 : 0;
    last = std::move(now);
  }
}

}  // namespace quasi::mosfet
