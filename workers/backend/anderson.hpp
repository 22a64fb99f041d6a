#pragma once

#include <deque>
#include <vector>

namespace quasi {

/// Anderson mixing of a fixed-point iteration x ← G(x). The next x is the combination of the last
/// iterates whose residuals G(x) − x cancel best in the least-squares sense.
class AndersonMixing {
 public:
  explicit AndersonMixing(int depth) : depth_(depth) {}

  /// @param x, image  an iterate and G(x)
  /// @return the next iterate
  std::vector<double> next(const std::vector<double>& x, const std::vector<double>& image);
  /// Forgets all iterates.
  void forget();

 private:
  /// Returns the weights of the differences of residuals that cancel `residual` best.
  std::vector<double> weights(const std::vector<double>& residual) const;

  int depth_;
  std::vector<double> last_residual_, last_image_;
  std::deque<std::vector<double>> residual_steps_, image_steps_;
};

}  // namespace quasi
