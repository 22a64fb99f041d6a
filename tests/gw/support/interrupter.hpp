#pragma once

#include <string_view>

#include "workers/backend/progress.hpp"

namespace quasi::gw {

/// Cancels at the n-th report of finished work on ε or Σ.
class Interrupter : public SilentProgress {
 public:
  explicit Interrupter(int after) : left_(after) {}
  bool cancelled() const override { return left_ <= 0; }

 protected:
  void on_report(std::string_view phase, std::int64_t, std::int64_t) override {
    if (phase == "polarizability" || phase == "self-energy" || phase == "full-matrix self-energy" ||
        phase == "first order of the self-energy")
      --left_;
  }

 private:
  int left_;
};

}  // namespace quasi::gw
