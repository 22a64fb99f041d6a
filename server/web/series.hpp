#pragma once

#include <cstddef>
#include <deque>

namespace quasi::server {

/// The last values of a figure, equally far apart, in a bounded memory.
class Series {
 public:
  static constexpr std::size_t kMost = 120;
  void add(float value) {
    values_.push_back(value);
    if (values_.size() > kMost) values_.pop_front();
  }
  const std::deque<float>& values() const { return values_; }

 private:
  std::deque<float> values_;
};

}  // namespace quasi::server
