// Heavy kernels of the gw kind: one JSON line a case.
//
//   gw_kernels [--device cuda:0] [--size small|si214] [--offdiagonal-bands N] [--outer-states N]
//   [--hermitian] [case …]
//
// Cases: diagonal offdiagonal separable options chi chi-pairs fft inverse. Canonical flops are the
// published counts (diagonal: 83.5 for each of N_Σ N_b N_G² N_E; off-diagonal: eq. 8); issued flops
// those of the products really called. --hermitian: the off-diagonal cases with a Hermitian model.
// Data are random; sizes `si214` are those of a 214-atom silicon cell.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using Options = gw::OffDiagonalOptions;

struct Sizes {
  std::int64_t n_g, n_bands, n_energies_off, n_bands_off, n_left_chi, n_right_chi, n_right_fft;
  int box, psi_limit, sphere_limit_squared;
  std::vector<std::int64_t> n_sigma;
  bool hermitian = false;  ///< model of the off-diagonal cases
};

constexpr double kRydberg_ev = 13.60569253;

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Counter-based random number in [0, 1).
double uniform(std::uint64_t counter) {
  std::uint64_t z = counter * 0x9e3779b97f4a7c15u + 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

std::vector<Cplx> random_complex(std::int64_t count, std::uint64_t seed) {
  std::vector<Cplx> values(static_cast<std::size_t>(count));
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint64_t>(i) + (seed << 40);
    values[static_cast<std::size_t>(i)] = {uniform(2 * at) - 0.5, uniform(2 * at + 1) - 0.5};
  }
  return values;
}

enum class Symmetry { kNone, kHermitian };

/// Poles from 0.46 to 93 Ry, spread in the logarithm, one element in ten static: silicon's range.
struct Model {
  std::int64_t n_g;
  std::vector<Cplx> strength;
  std::vector<double> pole_ry;
  Model(std::int64_t n, Symmetry symmetry)
      : n_g(n), strength(static_cast<std::size_t>(n * n)), pole_ry(strength.size()) {
#pragma omp parallel for schedule(static)
    for (std::int64_t g = 0; g < n; ++g)
      for (std::int64_t h = 0; h < n; ++h) {
        const bool swap = symmetry == Symmetry::kHermitian && h < g;
        const auto at = static_cast<std::uint64_t>(swap ? h * n + g : g * n + h);
        const double pole = uniform(4 * at) < 0.1 ? gw::kStaticPole_ry
                                                  : 0.46 * std::pow(202.0, uniform(4 * at + 1));
        const Cplx b(uniform(4 * at + 2) - 0.5,
                     symmetry == Symmetry::kHermitian && g == h ? 0.0 : uniform(4 * at + 3) - 0.5);
        pole_ry[static_cast<std::size_t>(g * n + h)] = pole;
        strength[static_cast<std::size_t>(g * n + h)] = pole * (swap ? std::conj(b) : b);
      }
  }
  gw::PlasmonPoleView view() const {
    return {{strength.data(), {n_g, n_g}}, {pole_ry.data(), {n_g, n_g}}};
  }
};

/// Random pair products on the device.
std::unique_ptr<gw::PairBlock> loaded_block(gw::GwKernels& kernels, std::int64_t n_left,
                                            std::int64_t n_right, std::int64_t n_g,
                                            std::uint64_t seed) {
  auto block = kernels.pair_products().make_block();
  const auto products = random_complex(n_left * n_right * n_g, seed);
  block->load({products.data(), {n_left, n_right, n_g}});
  return block;
}

/// A random plasmon-pole model on the device.
std::shared_ptr<const gw::LoadedPoleModel> loaded_model(gw::GwKernels& kernels, std::int64_t n_g,
                                                        Symmetry symmetry) {
  const Model model(n_g, symmetry);
  return kernels.pole_sums().load(model.view(), {});
}

void diagonal(gw::GwKernels& kernels, const Sizes& size) {
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
  for (const Symmetry symmetry : {Symmetry::kNone, Symmetry::kHermitian}) {
    const auto poles = loaded_model(kernels, n_g, symmetry);
    for (const bool with_sx : {false, true}) {
      std::vector<Cplx> total(n_e), sx(n_e);
      const auto run = [&] {
        poles->add_diagonal(*block, {{x.data(), {1, n, n_e}}, {occupation.data(), {n}}, 1e-9},
                            {{total.data(), {1, n_e}},
                             with_sx ? View<Cplx, 2>{sx.data(), {1, n_e}} : View<Cplx, 2>{}});
      };
      run();
      const double seconds = std::min(seconds_of(run), seconds_of(run));
      const double evaluations =
          static_cast<double>(n * n_e) * static_cast<double>(n_g) * static_cast<double>(n_g);
      std::printf(
          "{\"case\": \"diagonal\", \"device\": \"%s\", \"model\": \"%s\", \"sx\": %s, \"n_g\": "
          "%ld, \"bands\": %ld, "
          "\"energies\": %ld, \"seconds\": %.4f, \"evaluations_per_s\": %.4e, "
          "\"canonical_tflops\": %.2f}\n",
          kernels.device().name().c_str(), symmetry == Symmetry::kNone ? "general" : "hermitian",
          with_sx ? "true" : "false", n_g, n, n_e, seconds, evaluations / seconds,
          83.5 * evaluations / seconds / 1e12);
      std::fflush(stdout);
    }
  }
}

struct OffDiagonalData {
  std::vector<double> energies, bands, occupation;
  /// Energies over 1 Ry; a fifth of the bands occupied below, the rest above, one band inside the
  /// window so that 1.9 % of the pairs cross a pole.
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

struct OffDiagonalRun {
  double seconds;
  gw::OffDiagonalReport report;
  std::vector<Cplx> sigma;
};

/// The model and the pair products of an off-diagonal case on the device.
struct OffDiagonalOnDevice {
  std::shared_ptr<const gw::LoadedPoleModel> poles;
  std::unique_ptr<gw::PairBlock> block;
};

OffDiagonalRun run_offdiagonal(const OffDiagonalOnDevice& loaded, const OffDiagonalData& data,
                               const Options& options) {
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

void print_offdiagonal(const char* what, gw::GwKernels& kernels, const Sizes& size,
                       std::int64_t n_sigma, const OffDiagonalData& data, const OffDiagonalRun& run,
                       double reference_seconds, double error_ev) {
  const double pairs = static_cast<double>(data.energies.size() * data.bands.size());
  const double canonical =
      2.0 * pairs * 8.0 *
      (static_cast<double>(n_sigma * size.n_g) * static_cast<double>(size.n_g + n_sigma));
  std::printf(
      "{\"case\": \"%s\", \"device\": \"%s\", \"n_g\": %ld, \"n_sigma\": %ld, \"energies\": %zu, "
      "\"bands\": %zu, "
      "\"model\": \"%s\", \"seconds\": %.4f, \"issued_tflop\": %.1f, \"issued_tflops\": %.2f, "
      "\"of_67\": %.3f, \"eq8_tflops\": %.2f, \"direct_share\": %.4f, \"terms\": %ld, "
      "\"fit_error\": %.1e, \"fit_s\": %.3f, \"residual\": %.1e, \"speedup\": %.2f, \"error_ev\": "
      "%.2e}\n",
      what, kernels.device().name().c_str(), size.n_g, n_sigma, data.energies.size(),
      data.bands.size(), run.report.hermitian ? "hermitian" : "general", run.seconds,
      run.report.zgemm_flops / 1e12, run.report.zgemm_flops / run.seconds / 1e12,
      run.report.zgemm_flops / run.seconds / 67e12, canonical / run.seconds / 1e12,
      static_cast<double>(run.report.direct_pairs) / pairs, run.report.terms,
      run.report.fit_error_relative, run.report.fit_seconds, run.report.residual,
      reference_seconds / run.seconds, error_ev);
  std::fflush(stdout);
}

void load_offdiagonal(gw::GwKernels& kernels, const Sizes& size, std::int64_t n_sigma,
                      std::int64_t n_bands, OffDiagonalOnDevice& loaded) {
  if (loaded.poles == nullptr)
    loaded.poles =
        loaded_model(kernels, size.n_g, size.hermitian ? Symmetry::kHermitian : Symmetry::kNone);
  loaded.block = nullptr;
  loaded.block = loaded_block(kernels, n_sigma, n_bands, size.n_g, 3);
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

void offdiagonal(gw::GwKernels& kernels, const Sizes& size, bool separable) {
  OffDiagonalOnDevice loaded;
  for (const std::int64_t n_sigma : size.n_sigma) {
    const bool first = loaded.poles == nullptr;
    load_offdiagonal(kernels, size, n_sigma, size.n_bands_off, loaded);
    if (first) run_offdiagonal(loaded, {6, 1}, {});
    const OffDiagonalData data(size.n_energies_off, size.n_bands_off);
    const auto direct = run_offdiagonal(loaded, data, {});
    print_offdiagonal("offdiagonal", kernels, size, n_sigma, data, direct, direct.seconds, 0.0);
    if (!separable) continue;
    // Once each with data of no account: a device loads code when it is first asked for it.
    for (const auto method : {Options::Method::kRationalSums, Options::Method::kExponentialSums}) {
      Options options;
      options.method = method;
      run_offdiagonal(loaded, {6, size.n_bands_off}, options);
    }
    for (const auto& [method, tolerance, name] :
         {std::tuple{Options::Method::kRationalSums, 4e-6, "rational sums"},
          {Options::Method::kExponentialSums, 1e-6, "exponential sums, with the fit"},
          {Options::Method::kExponentialSums, 1e-6, "exponential sums"}}) {
      Options options;
      options.method = method;
      options.tolerance_relative = tolerance;
      const auto run = run_offdiagonal(loaded, data, options);
      print_offdiagonal(name, kernels, size, n_sigma, data, run, direct.seconds,
                        difference_ev(direct, run));
    }
  }
}

void options(gw::GwKernels& kernels, const Sizes& size) {
  const std::int64_t n_sigma = size.n_sigma.back(), n_bands = 2;
  OffDiagonalOnDevice loaded;
  load_offdiagonal(kernels, size, n_sigma, n_bands, loaded);
  const OffDiagonalData data(std::min<std::int64_t>(size.n_energies_off, 48), n_bands);
  run_offdiagonal(loaded, {6, 1}, {});
  const auto native = run_offdiagonal(loaded, data, {});
  print_offdiagonal("native products", kernels, size, n_sigma, data, native, native.seconds, 0.0);
  for (const auto& [products, name] :
       {std::pair{Options::Products::kThreeMultiplications, "three multiplications"},
        {Options::Products::kEmulated, "emulated FP64"}}) {
    Options choice;
    choice.products = products;
    try {
      run_offdiagonal(loaded, {6, 1}, choice);
      const auto run = run_offdiagonal(loaded, data, choice);
      print_offdiagonal(name, kernels, size, n_sigma, data, run, native.seconds,
                        difference_ev(native, run));
    } catch (const Error& failure) {
      std::printf("{\"case\": \"%s\", \"device\": \"%s\", \"not_offered\": \"%s\"}\n", name,
                  kernels.device().name().c_str(), failure.what());
    }
  }
}

void chi(gw::GwKernels& kernels, const Sizes& size) {
  const std::int64_t n_left = size.n_left_chi, n_right = size.n_right_chi, n_g = size.n_g;
  const auto block = loaded_block(kernels, n_left, n_right, n_g, 5);
  std::vector<double> weight(static_cast<std::size_t>(n_left * n_right));
  for (std::size_t p = 0; p < weight.size(); ++p) weight[p] = -uniform(p);
  const auto sum = kernels.polarizability().start({.n_static = n_g});
  const auto run = [&] { sum->add(*block, {weight.data(), {n_left, n_right}}); };
  run();
  const double seconds = std::min(seconds_of(run), seconds_of(run));
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

struct BoxIndices {
  std::vector<std::int32_t> psi, sphere;
};

BoxIndices indices_in_box(int n, const Sizes& size) {
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

/// χ from wavefunctions, nothing kept: complex and real, transforms beside the products and before
/// them.
void chi_pairs(gw::GwKernels& kernels, const Sizes& size) {
  const auto [psi, sphere] = indices_in_box(size.box, size);
  const auto n_pw = static_cast<std::int64_t>(psi.size()),
             n_g = static_cast<std::int64_t>(sphere.size());
  const std::int64_t n_left = 2 * size.n_left_chi, n_right = size.n_right_chi;
  const gw::FftBox box{size.box, size.box, size.box};
  gw::PairProductKernels& pair_products = kernels.pair_products();
  const auto loaded = pair_products.load_sphere(box, {sphere.data(), {n_g}}, {});
  std::vector<double> weight(static_cast<std::size_t>(n_left * n_right));
  for (std::size_t p = 0; p < weight.size(); ++p) weight[p] = -uniform(p);
  for (const bool real : {false, true}) {
    std::unique_ptr<const gw::LoadedBands> left_bands, right_bands;
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
      gw::ChiSum::PairsReport report;
      const auto run = [&] {
        report = sum->add_pairs({{*left_bands, {0, n_left}},
                                 {*right_bands, {0, n_right}},
                                 *loaded,
                                 {weight.data(), {n_left, n_right}},
                                 {}},
                                {.overlapped = overlapped});
      };
      run();
      const double seconds = std::min(seconds_of(run), seconds_of(run));
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

void fft(gw::GwKernels& kernels, const Sizes& size) {
  for (const int n : {size.box, 4 * size.box / 3}) {
    const auto [psi, sphere] = indices_in_box(n, size);
    const auto n_pw = static_cast<std::int64_t>(psi.size()),
               n_g = static_cast<std::int64_t>(sphere.size());
    const std::int64_t n_left = 2, n_right = size.n_right_fft;
    const gw::FftBox box{n, n, n};
    gw::PairProductKernels& pairs = kernels.pair_products();
    std::unique_ptr<const gw::LoadedBands> left_bands, right_bands;
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
    run();
    const double seconds = std::min(seconds_of(run), seconds_of(run));
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

void inverse(gw::GwKernels& kernels, const Sizes& size) {
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

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cpu", size_name = "small";
  std::vector<std::string> cases;
  std::int64_t bands_off = 0, outer_states = 0;
  bool hermitian = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--device") == 0 && i + 1 < argc)
      device = argv[++i];
    else if (std::strcmp(argv[i], "--size") == 0 && i + 1 < argc)
      size_name = argv[++i];
    else if (std::strcmp(argv[i], "--offdiagonal-bands") == 0 && i + 1 < argc)
      bands_off = std::atoll(argv[++i]);
    else if (std::strcmp(argv[i], "--outer-states") == 0 && i + 1 < argc)
      outer_states = std::atoll(argv[++i]);
    else if (std::strcmp(argv[i], "--hermitian") == 0)
      hermitian = true;
    else
      cases.emplace_back(argv[i]);
  }
  if (cases.empty()) cases = {"diagonal", "offdiagonal", "chi", "fft", "inverse"};
  const Sizes small{.n_g = 300,
                    .n_bands = 200,
                    .n_energies_off = 20,
                    .n_bands_off = 10,
                    .n_left_chi = 4,
                    .n_right_chi = 200,
                    .n_right_fft = 100,
                    .box = 18,
                    .psi_limit = 4,
                    .sphere_limit_squared = 17,
                    .n_sigma = {16}};
  const Sizes si214{.n_g = 11075,
                    .n_bands = 5000,
                    .n_energies_off = 200,
                    .n_bands_off = 20,
                    .n_left_chi = 8,
                    .n_right_chi = 5000,
                    .n_right_fft = 2000,
                    .box = 48,
                    .psi_limit = 16,
                    .sphere_limit_squared = 191,
                    .n_sigma = {128, 256, 512}};
  if (size_name != "small" && size_name != "si214") {
    std::cerr << "--size is small or si214, not " << size_name << '\n';
    return 2;
  }
  Sizes size = size_name == "small" ? small : si214;
  size.hermitian = hermitian;
  if (bands_off > 0) size.n_bands_off = bands_off;
  if (outer_states > 0) size.n_sigma = {outer_states};
  try {
    const auto kernels = gw::make_gw_kernels(find_device(device));
    for (const std::string& one : cases) {
      if (one == "diagonal")
        diagonal(*kernels, size);
      else if (one == "offdiagonal")
        offdiagonal(*kernels, size, false);
      else if (one == "separable")
        offdiagonal(*kernels, size, true);
      else if (one == "options")
        options(*kernels, size);
      else if (one == "chi")
        chi(*kernels, size);
      else if (one == "chi-pairs")
        chi_pairs(*kernels, size);
      else if (one == "fft")
        fft(*kernels, size);
      else if (one == "inverse")
        inverse(*kernels, size);
      else {
        std::cerr << "no case '" << one << "'\n";
        return 2;
      }
    }
  } catch (const Error& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
  }
  return 0;
}
