#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/figures/histogram.hpp"

namespace quasi::server {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

/// Writes samples in the text format of Prometheus, version 0.0.4. The samples of a family follow
/// the call of `family` that names it.
class Exposition {
 public:
  /// @param type  counter, gauge or histogram
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(const Labels& labels, double value);
  void sample(double value) { sample({}, value); }
  /// Adds the buckets, the sum and the count of a histogram.
  void sample(const Labels& labels, const HistogramView& histogram);
  const std::string& text() const { return text_; }

 private:
  void line(std::string_view suffix, const Labels& labels, double value);
  std::string name_;
  std::string text_;
};

}  // namespace quasi::server
