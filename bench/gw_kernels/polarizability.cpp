#include <complex>
#include <cstdio>

#include "bench/gw_kernels/cases.hpp"
#include "bench/gw_kernels/random_data.hpp"

namespace quasi::gw {
namespace {

/// Places in the box of the plane waves of a state and of the G vectors.
struct BoxIndices {
  std::vector<std::int32_t> psi, sphere;
};

BoxIndices indices_in_box(int n, const CaseSizes& size) {
  BoxIndices list;
  const int half = n / 2;
  for (int i = -half; i < half; ++i)
    for (int j = -half; j < half; ++j)
      for (int k = -half; k < half; ++k) {
        const auto at =
            static_cast<std::int32_t>((((i + n) % n) * n + (j + n) % n) * n + (k + n) % n);
        const int square = i * i + j * j + k * k;
        if (square <= size.psi_limit * size.psi_limit) list.psi.push_back(at);
        if (square <= size.sphere_limit_squared) list.sphere.push_back(at);
      }
  return list;
}

}  // namespace

void time_chi(GwKernels& kernels, const CaseSizes& size) {
  const std::int64_t n_left = size.n_left_chi, n_right = size.n_right_chi, n_g = size.n_g;
  const auto block = loaded_block(kernels, n_left, n_right, n_g, 5);
  std::vector<double> weight(static_cast<std::size_t>(n_left * n_right));
  for (std::size_t p = 0; p < weight.size(); ++p) weight[p] = -uniform(p);
  const auto sum = kernels.polarizability().start({.n_static = n_g});
  const auto run = [&] { sum->add(*block, {weight.data(), {n_left, n_right}}); };
  const double seconds = best_seconds_of(run);
  const double flops = 4.0 * static_cast<double>(n_left * n_right) * static_cast<double>(n_g) *
                       static_cast<double>(n_g);
  std::printf(
      "{\"case\": \"chi\", \"device\": \"%s\", \"n_g\": %ld, \"pairs\": %ld, \"seconds\": %.4f, "
      "\"tflops_4nng2\": %.2f, "
      "\"seconds_for_428x5000\": %.2f}\n",
      kernels.device().name().c_str(), n_g, n_left * n_right, seconds, flops / seconds / 1e12,
      seconds * 428.0 * 5000.0 / static_cast<double>(n_left * n_right));
  std::fflush(stdout);
}

void time_chi_pairs(GwKernels& kernels, const CaseSizes& size) {
  const auto [psi, sphere] = indices_in_box(size.box, size);
  const auto n_pw = static_cast<std::int64_t>(psi.size()),
             n_g = static_cast<std::int64_t>(sphere.size());
  const std::int64_t n_left = 2 * size.n_left_chi, n_right = size.n_right_chi;
  const FftBox box{size.box, size.box, size.box};
  PairProductKernels& pair_products = kernels.pair_products();
  const auto loaded = pair_products.load_sphere(box, {sphere.data(), {n_g}}, {});
  std::vector<double> weight(static_cast<std::size_t>(n_left * n_right));
  for (std::size_t p = 0; p < weight.size(); ++p) weight[p] = -uniform(p);
  for (const bool real : {false, true}) {
    std::unique_ptr<const LoadedBands> left_bands, right_bands;
    {
      auto left = random_complex(n_left * n_pw, 7), right = random_complex(n_right * n_pw, 8);
      for (auto* list : {&left, &right})
        for (auto& c : *list) c = real ? c.real() : c;
      const View<const std::int32_t, 1> positions{psi.data(), {n_pw}};
      left_bands = pair_products.load_bands(box, {left.data(), {n_left, n_pw}}, positions);
      right_bands = pair_products.load_bands(box, {right.data(), {n_right, n_pw}}, positions);
    }
    for (const bool overlapped : {false, true}) {
      const auto sum = kernels.polarizability().start({.n_static = n_g});
      ChiSum::PairsReport report;
      const auto run = [&] {
        report = sum->add_pairs({{*left_bands, {0, n_left}},
                                 {*right_bands, {0, n_right}},
                                 *loaded,
                                 {weight.data(), {n_left, n_right}},
                                 {}},
                                {.overlapped = overlapped});
      };
      const double seconds = best_seconds_of(run);
      const double pairs = static_cast<double>(n_left * n_right), n = static_cast<double>(n_g);
      std::printf(
          "{\"case\": \"chi-pairs\", \"device\": \"%s\", \"real\": %s, \"overlapped\": %s, "
          "\"n_g\": %ld, \"pairs\": %ld, \"seconds\": %.4f, "
          "\"transforms_s\": %.4f, \"products_s\": %.4f, \"product_tflops\": %.2f, "
          "\"seconds_for_428x5000\": %.2f}\n",
          kernels.device().name().c_str(), report.real ? "true" : "false",
          overlapped ? "true" : "false", n_g, n_left * n_right, seconds, report.transform_seconds,
          report.product_seconds,
          (report.real ? 1.0 : 4.0) * pairs * n * n / report.product_seconds / 1e12,
          seconds * 428.0 * 5000.0 / pairs);
      std::fflush(stdout);
    }
  }
}

void time_fft(GwKernels& kernels, const CaseSizes& size) {
  for (const int n : {size.box, 4 * size.box / 3}) {
    const auto [psi, sphere] = indices_in_box(n, size);
    const auto n_pw = static_cast<std::int64_t>(psi.size()),
               n_g = static_cast<std::int64_t>(sphere.size());
    const std::int64_t n_left = 2, n_right = size.n_right_fft;
    const FftBox box{n, n, n};
    PairProductKernels& pairs = kernels.pair_products();
    std::unique_ptr<const LoadedBands> left_bands, right_bands;
    {
      const auto left = random_complex(n_left * n_pw, 7), right = random_complex(n_right * n_pw, 8);
      const View<const std::int32_t, 1> positions{psi.data(), {n_pw}};
      left_bands = pairs.load_bands(box, {left.data(), {n_left, n_pw}}, positions);
      right_bands = pairs.load_bands(box, {right.data(), {n_right, n_pw}}, positions);
    }
    const auto loaded = pairs.load_sphere(box, {sphere.data(), {n_g}}, {});
    const auto block = pairs.make_block();
    const auto run = [&] {
      pairs.fill({*left_bands, {0, n_left}}, {*right_bands, {0, n_right}}, *loaded, *block);
    };
    const double seconds = best_seconds_of(run);
    const double bytes = 80.0 * n * n * n * static_cast<double>(n_left * n_right);
    std::printf(
        "{\"case\": \"fft\", \"device\": \"%s\", \"box\": %d, \"n_g\": %ld, \"pairs\": %ld, "
        "\"seconds\": %.5f, "
        "\"microseconds_per_pair\": %.3f, \"counted_gb_per_s\": %.1f}\n",
        kernels.device().name().c_str(), n, n_g, n_left * n_right, seconds,
        1e6 * seconds / static_cast<double>(n_left * n_right), bytes / seconds / 1e9);
    std::fflush(stdout);
  }
}

void time_inverse(GwKernels& kernels, const CaseSizes& size) {
  const std::int64_t n = size.n_g;
  auto matrix = random_complex(n * n, 9);
#pragma omp parallel for schedule(static)
  for (std::int64_t g = 0; g < n; ++g) {
    for (std::int64_t h = 0; h < g; ++h)
      matrix[static_cast<std::size_t>(g * n + h)] =
          std::conj(matrix[static_cast<std::size_t>(h * n + g)]);
    matrix[static_cast<std::size_t>(g * n + g)] = static_cast<double>(n);
  }
  const double seconds = seconds_of([&] {
    kernels.dense().invert_positive_definite({matrix.data(), {n, n}});
  });
  std::printf("{\"case\": \"inverse\", \"device\": \"%s\", \"n\": %ld, \"seconds\": %.3f}\n",
              kernels.device().name().c_str(), n, seconds);
  std::fflush(stdout);
}

}  // namespace quasi::gw
