#include "workers/backend/anderson.hpp"

#include <cmath>

namespace quasi {
namespace {

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out(a);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] -= b[k];
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace

void AndersonMixing::forget() {
  last_residual_.clear();
  residual_steps_.clear();
  image_steps_.clear();
}

std::vector<double> AndersonMixing::next(const std::vector<double>& x,
                                         const std::vector<double>& image) {
  const std::vector<double> residual = difference(image, x);
  if (!last_residual_.empty()) {
    residual_steps_.push_back(difference(residual, last_residual_));
    image_steps_.push_back(difference(image, last_image_));
    if (static_cast<int>(residual_steps_.size()) > depth_) {
      residual_steps_.pop_front();
      image_steps_.pop_front();
    }
  }
  last_residual_ = residual;
  last_image_ = image;
  std::vector<double> mixed = image;
  const std::vector<double> share = weights(residual);
  for (std::size_t k = 0; k < share.size(); ++k)
    for (std::size_t at = 0; at < mixed.size(); ++at) mixed[at] -= share[k] * image_steps_[k][at];
  return mixed;
}

// Orthogonalises the steps from the newest backwards. A step that adds less than 1e-6 of its length
// is left out, because its weight would only amplify rounding.
std::vector<double> AndersonMixing::weights(const std::vector<double>& residual) const {
  const std::size_t n = residual_steps_.size();
  std::vector<std::vector<double>> basis, upper;
  std::vector<std::size_t> kept_index;
  for (std::size_t back = 0; back < n; ++back) {
    const std::size_t k = n - 1 - back;
    std::vector<double> direction = residual_steps_[k], column;
    const double length = std::sqrt(dot(direction, direction));
    for (const std::vector<double>& known : basis) {
      column.push_back(dot(known, direction));
      for (std::size_t at = 0; at < direction.size(); ++at)
        direction[at] -= column.back() * known[at];
    }
    const double rest = std::sqrt(dot(direction, direction));
    if (!(rest > 1e-6 * length)) continue;
    for (double& value : direction) value /= rest;
    column.push_back(rest);
    basis.push_back(std::move(direction));
    upper.push_back(std::move(column));
    kept_index.push_back(k);
  }
  std::vector<double> share(n, 0.0), solved(basis.size());
  for (std::size_t row = basis.size(); row-- > 0;) {
    double sum = dot(basis[row], residual);
    for (std::size_t column = row + 1; column < basis.size(); ++column)
      sum -= upper[column][row] * solved[column];
    solved[row] = sum / upper[row][row];
    share[kept_index[row]] = solved[row];
  }
  return share;
}

}  // namespace quasi
