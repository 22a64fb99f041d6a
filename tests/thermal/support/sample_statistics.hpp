#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace quasi::thermal::test {

/// Compares samples of many seeds with the exact values of a number of rates.
class SampleStatistics {
 public:
  explicit SampleStatistics(std::vector<double> exact)
      : exact_(std::move(exact)), sum_(exact_.size(), 0.0), square_(exact_.size(), 0.0) {
    // A rate that symmetry forbids is only rounding noise and is left out.
    const double largest = *std::max_element(exact_.begin(), exact_.end());
    for (double& x : exact_)
      if (x < 1e-20 * largest) x = 0.0;
  }

  /// Adds the rates of one seed with their standard errors.
  void add(const std::vector<double>& rate, const std::vector<double>& error) {
    ASSERT_EQ(rate.size(), exact_.size());
    ASSERT_EQ(error.size(), exact_.size());
    ++seeds_;
    for (std::size_t i = 0; i < exact_.size(); ++i) {
      sum_[i] += rate[i];
      square_[i] += rate[i] * rate[i];
      if (!(exact_[i] > 0.0) || !(error[i] > 0.0)) continue;
      ++bars_;
      covered_ += std::fabs(rate[i] - exact_[i]) <= 2.0 * error[i];
    }
  }

  /// Expects the mean of all seeds within 3 of its standard errors; three in a thousand may be
  /// outside by chance, and one in a hundred is allowed. Of 100 bars of two standard errors, 90 to
  /// 99 must cover the exact value (95.4 for normal errors; errors of few large terms are skew).
  void expect_honest() const {
    int outside = 0, checked = 0;
    double worst = 0.0;
    for (std::size_t i = 0; i < exact_.size(); ++i) {
      if (!(exact_[i] > 0.0)) continue;
      const double mean = sum_[i] / seeds_;
      const double error =
          std::sqrt(std::max(0.0, square_[i] / seeds_ - mean * mean) / (seeds_ - 1));
      const double off = std::fabs(mean - exact_[i]);
      ++checked;
      outside += off > 3.0 * error + 1e-12 * exact_[i];
      worst = std::max(worst, off / (error + 1e-12 * exact_[i]));
    }
    const double share = static_cast<double>(covered_) / static_cast<double>(bars_);
    std::printf(
        "    %d rates, mean of %d seeds at most %.1f standard errors off (%d beyond 3); %lld bars, "
        "2-sigma coverage %.1f %%\n",
        checked, seeds_, worst, outside, static_cast<long long>(bars_), 100.0 * share);
    EXPECT_GT(checked, 20);
    EXPECT_LE(outside, checked / 100);
    EXPECT_GT(share, 0.90);
    EXPECT_LT(share, 0.99);
  }

 private:
  std::vector<double> exact_, sum_, square_;
  int seeds_ = 0;
  std::int64_t covered_ = 0, bars_ = 0;
};

}  // namespace quasi::thermal::test
