#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/four_phonon/scatter/scatter_kernel_4ph_cuda.cuh"
#include "workers/thermal/model/precision.hpp"

namespace quasi::thermal::cuda4ph {

/// Chooses the variant of scatter_kernel and its shared memory for one problem, and launches it.
/// See docs/theory/thermal.md 7 for the equations.
class ScatterLauncher {
 public:
  ScatterLauncher() = default;
  /// @throws InvalidInput if a block has too little shared memory for the problem.
  ScatterLauncher(const Tables4ph& tables, int n_steps, Form4ph form, Precision precision)
      : n_branches_(tables.n_branches),
        n_atoms_(tables.n_atoms),
        n_temperatures_(tables.n_temperatures),
        n_pairs_(tables.n_pairs),
        n_steps_(n_steps),
        exchanges_(tables.exchange.has_value()),
        form_(form),
        precision_(precision) {
    choose_group();
  }

  /// Loads the kernels of a use to the current device. CUDA would load each at its first launch.
  /// @param n_atoms  of the problems that follow
  template <Use kUse>
  static void load_kernels(int n_atoms, Precision precision) {
    const auto load = []<typename V, int kBlocks>() {
      cudaFuncAttributes attributes{};
      cuda::check(cudaFuncGetAttributes(&attributes, scatter_kernel<V, kBlocks>),
                  "four-phonon scattering");
    };
    for (const Form4ph form : {Form4ph::kPairs, Form4ph::kSwapped}) {
      if (form == Form4ph::kSwapped && n_atoms != 2) continue;
      if (precision == Precision::kMixed && sums_rates(kUse))
        visit_variants<kUse, float>(n_atoms, form, load);
      else
        visit_variants<kUse, double>(n_atoms, form, load);
    }
  }

  /// Returns the number of branches s' that a block holds at the same time.
  int group() const { return group_; }

  /// Sums all channels of all rows of a launch.
  /// @param totals  total momenta of the launch
  template <Use kUse>
  void launch(const ScatterArguments& arguments, std::int32_t totals, cudaStream_t stream) const {
    if constexpr (sums_rates(kUse))
      if (precision_ == Precision::kMixed)
        return launch_for_atoms<kUse, float>(arguments, totals, stream);
    launch_for_atoms<kUse, double>(arguments, totals, stream);
  }

 private:
  static constexpr int kSharedGoal_bytes = 48 << 10;  ///< several blocks fit on a multiprocessor
  static constexpr int kSharedLimit_bytes = 200 << 10;

  template <typename Real>
  int shared_bytes(int group, int channels, Use use) const {
    const int exchanged = exchanged_in_shared(use, group, n_temperatures_);
    return elements_bytes<Real>(group, n_pairs_) + group * n_branches_ * 16 +
           kWarps * (sums_in_shared(use, channels, n_temperatures_) + exchanged) * 8 +
           kWarps * queue_bytes(form_) + slot_bytes(form_) + n_steps_ * 4;
  }

  void choose_group() {
    group_ = std::min(kGroup, n_branches_);
    const auto needed = [&] {
      return std::max(shared_bytes<double>(group_, 2, Use::kThinned),
                      shared_bytes<double>(group_, 2, exchanges_ ? Use::kShared : Use::kRates));
    };
    while (group_ > 1 && needed() > kSharedGoal_bytes) --group_;
    // each group gets about equally many branches
    const int groups = (n_branches_ + group_ - 1) / group_;
    group_ = (n_branches_ + groups - 1) / groups;
    if (needed() > kSharedLimit_bytes)
      throw InvalidInput(
          "four phonons on CUDA: " + std::to_string(n_pairs_) +
          " distinct pairs of third and fourth atoms (or " + std::to_string(n_temperatures_) +
          " temperatures) need more shared memory than a block has; use device cpu, or "
          "force constants of shorter range");
  }

  template <typename V, int kBlocks>
  void launch_variant(const ScatterArguments& arguments, std::int32_t totals,
                      cudaStream_t stream) const {
    const int bytes = shared_bytes<typename V::Real>(group_, V::kChannels, V::kUse);
    const auto kernel = scatter_kernel<V, kBlocks>;
    cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                "four-phonon scattering");
    kernel<<<dim3(static_cast<unsigned>(arguments.n_rows), static_cast<unsigned>(totals)), kThreads,
             bytes, stream>>>(arguments);
    cuda::check_launch("four-phonon scattering");
  }
  template <Use kUse, typename Real>
  void launch_for_atoms(const ScatterArguments& arguments, std::int32_t totals,
                        cudaStream_t stream) const {
    visit_variants<kUse, Real>(n_atoms_, form_, [&]<typename V, int kBlocks>() {
      launch_variant<V, kBlocks>(arguments, totals, stream);
    });
  }

  /// Calls visit<V, kBlocks>() for the variants V of both signs, or of ++ and +- alone where these
  /// visit the splittings. kBlocks is the least number of blocks on a multiprocessor, which bounds
  /// the registers.
  template <int kAtoms, Form4ph kForm, Use kUse, typename Real, int kBlocks, typename Visit>
  static void visit_signs(const Visit& visit) {
    visit.template operator()<ScatterVariant<1, kAtoms, kForm, kUse, Real>, kBlocks>();
    if constexpr (kUse != Use::kShared)
      visit.template operator()<ScatterVariant<-1, kAtoms, kForm, kUse, Real>, kBlocks>();
  }
  template <Use kUse, typename Real, typename Visit>
  static void visit_variants(int n_atoms, Form4ph form, const Visit& visit) {
    switch (n_atoms) {
      case 1:
        return visit_signs<1, Form4ph::kPairs, kUse, Real, 4>(visit);
      case 2:
        if (form == Form4ph::kSwapped)
          return visit_signs<2, Form4ph::kSwapped, kUse, Real, 4>(visit);
        return visit_signs<2, Form4ph::kPairs, kUse, Real, 4>(visit);
      case 3:
        return visit_signs<3, Form4ph::kPairs, kUse, Real, 2>(visit);
      case 4:
        return visit_signs<4, Form4ph::kPairs, kUse, Real, 2>(visit);
      default:
        return visit_signs<0, Form4ph::kPairs, kUse, Real, 2>(visit);
    }
  }

  int n_branches_ = 0, n_atoms_ = 0, n_temperatures_ = 0, n_pairs_ = 0, n_steps_ = 0;
  bool exchanges_ = false;
  Form4ph form_ = Form4ph::kPairs;
  Precision precision_ = Precision::kDouble;
  int group_ = 1;
};

}  // namespace quasi::thermal::cuda4ph
