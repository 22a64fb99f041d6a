// Times the heavy kernels of the kind gw. Each measurement is one JSON line.
//
//   gw_kernels [--device cuda:0] [--size small|si214] [--offdiagonal-bands N] [--outer-states N]
//   [--hermitian] [case …]
//
// Cases: diagonal offdiagonal separable options two-sets chi chi-pairs fft inverse. Canonical flops
// are the published counts (diagonal: 83.5 for each of N_Σ N_b N_G² N_E; off-diagonal: eq. 8 of
// [zhang2025]). Issued flops are those of the products that were called. --hermitian gives the
// off-diagonal cases a Hermitian model. Data are random; sizes `si214` are those of a 214-atom
// silicon cell.

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "bench/gw_kernels/cases.hpp"
#include "workers/backend/error.hpp"

namespace {

using namespace quasi;

const std::map<std::string, gw::CaseSizes> kSizes{{"small",
                                                   {.n_g = 300,
                                                    .n_bands = 200,
                                                    .n_energies_off = 20,
                                                    .n_bands_off = 10,
                                                    .n_left_chi = 4,
                                                    .n_right_chi = 200,
                                                    .n_right_fft = 100,
                                                    .box = 18,
                                                    .psi_limit = 4,
                                                    .sphere_limit_squared = 17,
                                                    .n_sigma = {16}}},
                                                  {"si214",
                                                   {.n_g = 11075,
                                                    .n_bands = 5000,
                                                    .n_energies_off = 200,
                                                    .n_bands_off = 20,
                                                    .n_left_chi = 8,
                                                    .n_right_chi = 5000,
                                                    .n_right_fft = 2000,
                                                    .box = 48,
                                                    .psi_limit = 16,
                                                    .sphere_limit_squared = 191,
                                                    .n_sigma = {128, 256, 512}}}};

using TimeCase = void (*)(gw::GwKernels&, const gw::CaseSizes&);
const std::map<std::string, TimeCase> kCases{
    {"diagonal", gw::time_diagonal},
    {"offdiagonal", [](auto& kernels, auto& size) { gw::time_offdiagonal(kernels, size, false); }},
    {"separable", [](auto& kernels, auto& size) { gw::time_offdiagonal(kernels, size, true); }},
    {"options", gw::time_products},
    {"two-sets", gw::time_two_sets},
    {"chi", gw::time_chi},
    {"chi-pairs", gw::time_chi_pairs},
    {"fft", gw::time_fft},
    {"inverse", gw::time_inverse}};

struct Arguments {
  std::string device = "cpu";
  gw::CaseSizes size;
  std::vector<std::string> cases;
};

/// @throws InvalidInput for a word that it does not know
Arguments parse(const std::vector<std::string>& words) {
  Arguments a;
  std::string size_name = "small";
  std::int64_t bands_off = 0, outer_states = 0;
  bool hermitian = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool has_value = i + 1 < words.size();
    if (word == "--device" && has_value)
      a.device = words[++i];
    else if (word == "--size" && has_value)
      size_name = words[++i];
    else if (word == "--offdiagonal-bands" && has_value)
      bands_off = std::atoll(words[++i].c_str());
    else if (word == "--outer-states" && has_value)
      outer_states = std::atoll(words[++i].c_str());
    else if (word == "--hermitian")
      hermitian = true;
    else if (kCases.contains(word))
      a.cases.push_back(word);
    else
      throw InvalidInput("no case '" + word + "'");
  }
  if (!kSizes.contains(size_name)) throw InvalidInput("--size is small or si214, not " + size_name);
  if (a.cases.empty()) a.cases = {"diagonal", "offdiagonal", "chi", "fft", "inverse"};
  a.size = kSizes.at(size_name);
  a.size.hermitian = hermitian;
  if (bands_off > 0) a.size.n_bands_off = bands_off;
  if (outer_states > 0) a.size.n_sigma = {outer_states};
  return a;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments a = parse({argv + 1, argv + argc});
    const auto kernels = gw::make_gw_kernels(find_device(a.device));
    for (const std::string& one : a.cases) kCases.at(one)(*kernels, a.size);
  } catch (const InvalidInput& failure) {
    std::cerr << failure.what() << '\n';
    return 2;
  } catch (const Error& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
  }
  return 0;
}
