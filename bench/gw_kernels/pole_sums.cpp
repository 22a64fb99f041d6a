#include <algorithm>
#include <cstdio>
#include <iterator>
#include <tuple>
#include <utility>

#include "bench/gw_kernels/cases.hpp"
#include "bench/gw_kernels/random_data.hpp"
#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

void print_diagonal(GwKernels& kernels, const CaseSizes& size, std::int64_t n_energies,
                    ModelSymmetry symmetry, bool with_sx, double seconds) {
  const double n_g = static_cast<double>(size.n_g),
               evaluations = static_cast<double>(size.n_bands * n_energies) * n_g * n_g;
  std::printf(
      "{\"case\": \"diagonal\", \"device\": \"%s\", \"model\": \"%s\", \"sx\": %s, \"n_g\": %ld, "
      "\"bands\": %ld, \"energies\": %ld, \"seconds\": %.4f, \"evaluations_per_s\": %.4e, "
      "\"canonical_tflops\": %.2f}\n",
      kernels.device().name().c_str(), symmetry == ModelSymmetry::kNone ? "general" : "hermitian",
      with_sx ? "true" : "false", size.n_g, size.n_bands, n_energies, seconds,
      evaluations / seconds, 83.5 * evaluations / seconds / 1e12);
  std::fflush(stdout);
}

/// Energies over 1 Ry and bands around them: a fifth is occupied and lies below, one band lies
/// inside, the rest above. With 20 bands 1.9 % of the pairs cross a pole.
struct OffDiagonalData {
  std::vector<double> energies, bands, occupation;
  OffDiagonalData(std::int64_t n_energies, std::int64_t n_bands) {
    for (std::int64_t e = 0; e < n_energies; ++e)
      energies.push_back(static_cast<double>(e) / static_cast<double>(n_energies));
    for (std::int64_t n = 0; n < n_bands; ++n) {
      const double t = static_cast<double>(n) / static_cast<double>(n_bands);
      const bool occupied = t < 0.2;
      bands.push_back(occupied ? -1.0 + 4.0 * t : n == n_bands - 1 ? 0.65 : 1.1 + 30.0 * (t - 0.2));
      occupation.push_back(occupied ? 1.0 : 0.0);
    }
  }
};

/// The model and the pair products of an off-diagonal case on the device.
struct OffDiagonalOnDevice {
  GwKernels& kernels;
  std::int64_t n_g;
  std::shared_ptr<const LoadedPoleModel> poles;
  std::unique_ptr<PairBlock> block = nullptr;

  OffDiagonalOnDevice(GwKernels& on, const CaseSizes& size)
      : kernels(on),
        n_g(size.n_g),
        poles(loaded_model(on, size.n_g,
                           size.hermitian ? ModelSymmetry::kHermitian : ModelSymmetry::kNone)) {}

  void load_products(std::int64_t n_sigma, std::int64_t n_bands) {
    block = nullptr;  // Two blocks need not fit into the memory.
    block = loaded_block(kernels, n_sigma, n_bands, n_g, 3);
  }
};

struct OffDiagonalRun {
  double seconds;
  OffDiagonalReport report;
  std::vector<Cplx> sigma;
};

OffDiagonalRun run_offdiagonal(const OffDiagonalOnDevice& loaded, const OffDiagonalData& data,
                               const OffDiagonalOptions& options) {
  const std::int64_t n_sigma = loaded.block->n_left();
  const auto n_e = static_cast<std::int64_t>(data.energies.size()),
             n_b = static_cast<std::int64_t>(data.bands.size());
  OffDiagonalRun run{};
  run.sigma.resize(static_cast<std::size_t>(n_e * n_sigma * n_sigma));
  run.seconds = seconds_of([&] {
    run.report =
        loaded.poles->add_offdiagonal(*loaded.block,
                                      {{data.energies.data(), {n_e}},
                                       {data.bands.data(), {n_b}},
                                       {data.occupation.data(), {n_b}},
                                       1.0},
                                      options, {run.sigma.data(), {n_e, n_sigma, n_sigma}});
  });
  return run;
}

/// Largest |ΔΣ| in eV when Σ is scaled so that its largest diagonal element is 10 eV.
double difference_ev(const OffDiagonalRun& a, const OffDiagonalRun& b) {
  double largest = 0.0, difference = 0.0;
  for (std::size_t i = 0; i < a.sigma.size(); ++i) {
    largest = std::max(largest, std::abs(a.sigma[i]));
    difference = std::max(difference, std::abs(a.sigma[i] - b.sigma[i]));
  }
  return 10.0 * difference / largest;
}

/// @param direct  the same sum by two products: the reference of time and error
void print_offdiagonal(const char* name, const OffDiagonalOnDevice& loaded,
                       const OffDiagonalData& data, const OffDiagonalRun& run,
                       const OffDiagonalRun& direct) {
  const std::int64_t n_g = loaded.n_g, n_sigma = loaded.block->n_left();
  const OffDiagonalReport& report = run.report;
  const double pairs = static_cast<double>(data.energies.size() * data.bands.size());
  const double canonical =
      2.0 * pairs * 8.0 * (static_cast<double>(n_sigma * n_g) * static_cast<double>(n_g + n_sigma));
  std::printf(
      "{\"case\": \"%s\", \"device\": \"%s\", \"n_g\": %ld, \"n_sigma\": %ld, \"energies\": %zu, "
      "\"bands\": %zu, \"model\": \"%s\", \"seconds\": %.4f, \"issued_tflop\": %.1f, "
      "\"issued_tflops\": %.2f, \"of_67\": %.3f, \"eq8_tflops\": %.2f, \"direct_share\": %.4f, ",
      name, loaded.kernels.device().name().c_str(), n_g, n_sigma, data.energies.size(),
      data.bands.size(), report.hermitian ? "hermitian" : "general", run.seconds,
      report.zgemm_flops / 1e12, report.zgemm_flops / run.seconds / 1e12,
      report.zgemm_flops / run.seconds / 67e12, canonical / run.seconds / 1e12,
      static_cast<double>(report.direct_pairs) / pairs);
  std::printf(
      "\"terms\": %ld, \"fit_error\": %.1e, \"fit_s\": %.3f, \"residual\": %.1e, \"speedup\": "
      "%.2f, "
      "\"error_ev\": %.2e}\n",
      report.terms, report.fit_error_relative, report.fit_seconds, report.residual,
      direct.seconds / run.seconds, difference_ev(direct, run));
  std::fflush(stdout);
}

/// Times both separable methods. Exponential sums run twice, because the second run finds the fit
/// of the first.
void time_separable(const OffDiagonalOnDevice& loaded, const OffDiagonalData& data,
                    const OffDiagonalRun& direct) {
  using Method = OffDiagonalOptions::Method;
  // A device loads code when it is first asked for it.
  for (const auto method : {Method::kRationalSums, Method::kExponentialSums}) {
    OffDiagonalOptions options;
    options.method = method;
    run_offdiagonal(loaded, {6, std::ssize(data.bands)}, options);
  }
  for (const auto& [method, tolerance, name] :
       {std::tuple{Method::kRationalSums, 4e-6, "rational sums"},
        {Method::kExponentialSums, 1e-6, "exponential sums, with the fit"},
        {Method::kExponentialSums, 1e-6, "exponential sums"}}) {
    OffDiagonalOptions options;
    options.method = method;
    options.tolerance_relative = tolerance;
    print_offdiagonal(name, loaded, data, run_offdiagonal(loaded, data, options), direct);
  }
}

}  // namespace

void time_diagonal(GwKernels& kernels, const CaseSizes& size) {
  const std::int64_t n_g = size.n_g, n = size.n_bands, n_e = 3;
  const auto block = loaded_block(kernels, 1, n, n_g, 1);
  std::vector<double> x, occupation;
  // An eighth of the bands occupied; three energies about the gap, 1 eV apart: few direct rows.
  for (std::int64_t i = 0; i < n; ++i) {
    const bool occupied = i < n / 8;
    const double band = occupied ? -1.0 * uniform(static_cast<std::uint64_t>(i) + 77)
                                 : 0.1 + 20.0 * static_cast<double>(i) / static_cast<double>(n);
    for (int e = 0; e < n_e; ++e) x.push_back(0.02 + e / kRydberg_ev - band);
    occupation.push_back(occupied ? 1.0 : 0.0);
  }
  for (const ModelSymmetry symmetry : {ModelSymmetry::kNone, ModelSymmetry::kHermitian}) {
    const auto poles = loaded_model(kernels, n_g, symmetry);
    for (const bool with_sx : {false, true}) {
      std::vector<Cplx> total(n_e), sx(n_e);
      const auto run = [&] {
        poles->add_diagonal(*block, {{x.data(), {1, n, n_e}}, {occupation.data(), {n}}, 1e-9},
                            {{total.data(), {1, n_e}},
                             with_sx ? View<Cplx, 2>{sx.data(), {1, n_e}} : View<Cplx, 2>{}});
      };
      const double seconds = best_seconds_of(run);
      print_diagonal(kernels, size, n_e, symmetry, with_sx, seconds);
    }
  }
}

void time_offdiagonal(GwKernels& kernels, const CaseSizes& size, bool separable) {
  OffDiagonalOnDevice loaded(kernels, size);
  bool first = true;
  for (const std::int64_t n_sigma : size.n_sigma) {
    loaded.load_products(n_sigma, size.n_bands_off);
    if (first) run_offdiagonal(loaded, {6, 1}, {});
    first = false;
    const OffDiagonalData data(size.n_energies_off, size.n_bands_off);
    const OffDiagonalRun direct = run_offdiagonal(loaded, data, {});
    print_offdiagonal("offdiagonal", loaded, data, direct, direct);
    if (separable) time_separable(loaded, data, direct);
  }
}

void time_products(GwKernels& kernels, const CaseSizes& size) {
  using Products = OffDiagonalOptions::Products;
  const std::int64_t n_bands = 2;
  OffDiagonalOnDevice loaded(kernels, size);
  loaded.load_products(size.n_sigma.back(), n_bands);
  const OffDiagonalData data(std::min<std::int64_t>(size.n_energies_off, 48), n_bands);
  run_offdiagonal(loaded, {6, 1}, {});
  const OffDiagonalRun native = run_offdiagonal(loaded, data, {});
  print_offdiagonal("native products", loaded, data, native, native);
  for (const auto& [products, name] :
       {std::pair{Products::kThreeMultiplications, "three multiplications"},
        {Products::kEmulated, "emulated FP64"}}) {
    OffDiagonalOptions options;
    options.products = products;
    try {
      run_offdiagonal(loaded, {6, 1}, options);
      print_offdiagonal(name, loaded, data, run_offdiagonal(loaded, data, options), native);
    } catch (const Error& failure) {
      std::printf("{\"case\": \"%s\", \"device\": \"%s\", \"not_offered\": \"%s\"}\n", name,
                  kernels.device().name().c_str(), failure.what());
    }
  }
}

void time_two_sets(GwKernels& kernels, const CaseSizes& size) {
  const std::int64_t n_g = size.n_g, n_b = std::min<std::int64_t>(size.n_bands_off, 4),
                     n_e = std::min<std::int64_t>(size.n_energies_off, 48);
  const auto poles = loaded_model(kernels, n_g, ModelSymmetry::kHermitian);
  const OffDiagonalData data(n_e, n_b);
  for (const std::int64_t n : size.n_sigma) {
    const auto bra = loaded_block(kernels, n, n_b, n_g, 3),
               ket = loaded_block(kernels, n, n_b, n_g, 4);
    std::vector<Cplx> sigma(static_cast<std::size_t>(n_e * n * n));
    OffDiagonalReport report;
    const double seconds = best_seconds_of([&] {
      report = poles->add_offdiagonal_between(*bra, *ket,
                                              {{data.energies.data(), {n_e}},
                                               {data.bands.data(), {n_b}},
                                               {data.occupation.data(), {n_b}},
                                               1.0},
                                              {}, {sigma.data(), {n_e, n, n}});
    });
    std::printf(
        "{\"case\": \"two-sets\", \"device\": \"%s\", \"n_g\": %ld, \"n_sigma\": %ld, "
        "\"energies\": %ld, \"bands\": %ld, \"seconds\": %.4f, \"issued_tflop\": %.1f, "
        "\"issued_tflops\": %.2f}\n",
        kernels.device().name().c_str(), n_g, n, n_e, n_b, seconds, report.zgemm_flops / 1e12,
        report.zgemm_flops / seconds / 1e12);
    std::fflush(stdout);
  }
}

}  // namespace quasi::gw
