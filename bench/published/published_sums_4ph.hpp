#pragma once

#include <cstdint>
#include <vector>

#include "bench/published/published_strategy.hpp"
#include "workers/backend/device/device.hpp"
#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"

/// Four-phonon sums as published with FourPhonon_GPU (docs/theory/thermal.md 11.2): every candidate
/// is tested by itself and every matrix element is summed block by block. They give the numbers of
/// ScatteringKernels4ph::sums and serve to compare times.
namespace quasi::thermal {

/// V of one tuple, block by block; conventions of ContractionPlan4ph. @return |V|² in eV²/(Å⁸
/// amu⁴).
QUASI_HD inline double squared_element_by_blocks(const Tables4ph& t, Channel4ph channel,
                                                 std::int32_t mode0, std::int32_t mode1,
                                                 std::int32_t mode2, std::int32_t mode3) {
  const int nb = t.n_branches;
  const Complex<double>* e0 = t.eigenvector + static_cast<std::int64_t>(mode0) * nb;
  const Complex<double>* e1 = t.eigenvector + static_cast<std::int64_t>(mode1) * nb;
  const Complex<double>* e2 = t.eigenvector + static_cast<std::int64_t>(mode2) * nb;
  const Complex<double>* e3 = t.eigenvector + static_cast<std::int64_t>(mode3) * nb;
  const Complex<double>* phase0 = t.phase + static_cast<std::int64_t>(mode0 / nb) * t.n_cells;
  const Complex<double>* phase1 = t.phase + static_cast<std::int64_t>(mode1 / nb) * t.n_cells;
  const Complex<double>* phase2 = t.phase + static_cast<std::int64_t>(mode2 / nb) * t.n_cells;
  const double sign1 = sign_second(channel);
  const double sign2 = sign_third(channel);
  Complex<double> v;
  for (int pair = 0; pair < t.n_pairs; ++pair)
    for (int triple = t.pair_begin[pair]; triple < t.pair_begin[pair + 1]; ++triple)
      for (int block = t.triple_begin[triple]; block < t.triple_begin[triple + 1]; ++block) {
        const double* psi = t.tensor + 81 * static_cast<std::int64_t>(block);
        Complex<double> sum;
        for (int a = 0; a < 3; ++a) {
          Complex<double> over_b;
          for (int b = 0; b < 3; ++b) {
            Complex<double> over_c;
            for (int c = 0; c < 3; ++c) {
              Complex<double> over_d;
              for (int d = 0; d < 3; ++d)
                over_d += psi[27 * a + 9 * b + 3 * c + d] * conj(e3[3 * t.pair_fourth[pair] + d]);
              Complex<double> e = e2[3 * t.pair_third[pair] + c];
              e.im *= sign2;
              over_c += e * over_d;
            }
            Complex<double> e = e1[3 * t.triple_atom[triple] + b];
            e.im *= sign1;
            over_b += e * over_c;
          }
          sum += e0[3 * t.block_atom[block] + a] * over_b;
        }
        Complex<double> p1 = phase1[t.triple_cell[triple]];
        p1.im *= sign1;
        Complex<double> p2 = phase2[t.pair_cell[pair]];
        p2.im *= sign2;
        v += phase0[t.block_cell[block]] * p1 * p2 * sum;
      }
  return squared_of_sum_4ph(t, v);
}

/// One process of a list.
struct Listed4ph {
  std::int32_t channel_row;  ///< row·3 + channel
  std::int32_t mode1, mode2, mode3;
};

/// Tests all candidates of (row, channel, λ') and calls found(mode2, mode3, process) for each that
/// is a process.
template <typename Found>
QUASI_HD inline void test_all_4ph(const Tables4ph& t, std::int64_t row, Channel4ph channel,
                                  std::int32_t mode1, const Found& found) {
  const int nb = t.n_branches;
  const std::int64_t point = row / nb;
  const std::int32_t mode0 = t.point[point] * nb + static_cast<std::int32_t>(row % nb);
  const int weight = t.partner_weight[point * t.mesh.size() + mode1 / nb];
  if (weight == 0 || !(t.omega[mode0] > 0.0) || !(t.omega[mode1] > 0.0)) return;
  const std::int32_t sum = t.mesh.add(mode0 / nb, mode1 / nb, sign_second(channel));
  for (std::int32_t q2 = 0; q2 < t.mesh.size(); ++q2) {
    const std::int32_t q3 = t.mesh.add(sum, q2, sign_third(channel));
    if (sign_third(channel) < 0 && q2 > q3) continue;  // the pair stands in one order only
    for (std::int32_t mode2 = q2 * nb; mode2 < q2 * nb + nb; ++mode2) {
      if (!(t.omega[mode2] > 0.0)) continue;
      for (std::int32_t mode3 = q3 * nb; mode3 < q3 * nb + nb; ++mode3) {
        if (!(t.omega[mode3] > 0.0) || (sign_third(channel) < 0 && mode2 > mode3)) continue;
        Process4ph process = test_candidate_4ph(t, channel, mode0, mode1, mode2, mode3);
        if (!(process.multiplicity > 0.0)) continue;
        process.multiplicity *= weight;
        found(mode2, mode3, process);
      }
    }
  }
}

/// Adds one process to sums of SumLayout4ph.
QUASI_HD inline void add_process_4ph(const Tables4ph& t, std::int32_t mode0,
                                     const Listed4ph& listed, const Process4ph& process,
                                     double squared, double* sums) {
  const auto channel = static_cast<Channel4ph>(listed.channel_row % kChannels4ph);
  const std::int32_t mode1 = listed.mode1, mode2 = listed.mode2, mode3 = listed.mode3;
  const SumLayout4ph layout{t.n_temperatures};
  const int nb = t.n_branches;
  const double delta = process.multiplicity * delta_4ph_ps(t.rules, process);
  const double omega[4] = {t.omega[mode0], t.omega[mode1], t.omega[mode2], t.omega[mode3]};
  const double density = delta * inverse_omega_product_4ph(t.rules, omega);
  const bool normal = is_normal_4ph(t, channel, mode0 / nb, mode1 / nb, mode2 / nb, mode3 / nb);
  for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
    const double* n = t.occupation + temperature * t.n_modes();
    const double w = density * bose_factor_4ph(channel, n[mode1], n[mode2], n[mode3]);
    sums[normal ? layout.normal(temperature) : layout.umklapp(temperature)] += w * squared;
    sums[layout.weighted_phase_space(temperature)] += w;
  }
  sums[layout.phase_space()] += delta;
  sums[layout.six_count()] += std::rint(6.0 * process.multiplicity);
  sums[layout.evaluations()] += 1.0;
}

/// Index of the bodies below: ((row − first_row)·3 + channel)·n_modes + λ'.
struct ListIndex4ph {
  std::int64_t row;
  Channel4ph channel;
  std::int32_t mode1;
  QUASI_HD ListIndex4ph(const Tables4ph& t, std::int64_t first_row, std::int64_t index)
      : row(first_row + index / t.n_modes() / kChannels4ph),
        channel(static_cast<Channel4ph>(index / t.n_modes() % kChannels4ph)),
        mode1(static_cast<std::int32_t>(index % t.n_modes())) {}
};

/// Counts the processes of each index.
struct CountList4ph {
  Tables4ph tables;
  std::int64_t first_row;
  std::int64_t* count;
  QUASI_HD void operator()(std::int64_t index) const {
    const ListIndex4ph at(tables, first_row, index);
    std::int64_t n = 0;
    test_all_4ph(tables, at.row, at.channel, at.mode1,
                 [&](std::int32_t, std::int32_t, const Process4ph&) { ++n; });
    count[index] = n;
  }
};

/// Writes the processes of each index from begin[index] on.
struct FillList4ph {
  Tables4ph tables;
  std::int64_t first_row;
  const std::int64_t* begin;
  Listed4ph* list;
  QUASI_HD void operator()(std::int64_t index) const {
    const ListIndex4ph at(tables, first_row, index);
    Listed4ph* to = list + begin[index];
    test_all_4ph(
        tables, at.row, at.channel, at.mode1,
        [&](std::int32_t mode2, std::int32_t mode3, const Process4ph&) {
          *to++ = {static_cast<std::int32_t>(at.row * kChannels4ph + static_cast<int>(at.channel)),
                   at.mode1, mode2, mode3};
        });
  }
};

/// |V|² of each process of a list.
struct EvaluateList4ph {
  Tables4ph tables;
  const Listed4ph* list;
  double* squared;
  QUASI_HD void operator()(std::int64_t index) const {
    const Listed4ph p = list[index];
    const std::int64_t row = p.channel_row / kChannels4ph;
    const std::int32_t mode0 = tables.point[row / tables.n_branches] * tables.n_branches +
                               static_cast<std::int32_t>(row % tables.n_branches);
    squared[index] =
        squared_element_by_blocks(tables, static_cast<Channel4ph>(p.channel_row % kChannels4ph),
                                  mode0, p.mode1, p.mode2, p.mode3);
  }
};

/// Sums the processes of each index, of a list or, without one, of all candidates.
struct SumList4ph {
  Tables4ph tables;
  std::int64_t first_row;
  const std::int64_t* begin;  ///< null: no list
  const Listed4ph* list;
  const double* squared;
  double* sums;  ///< [indices][SumLayout4ph]
  QUASI_HD void operator()(std::int64_t index) const {
    const Tables4ph& t = tables;
    const int size = SumLayout4ph{t.n_temperatures}.size();
    double* out = sums + index * size;
    for (int i = 0; i < size; ++i) out[i] = 0.0;
    const ListIndex4ph at(t, first_row, index);
    const std::int64_t point = at.row / t.n_branches;
    const std::int32_t mode0 =
        t.point[point] * t.n_branches + static_cast<std::int32_t>(at.row % t.n_branches);
    const auto channel_row =
        static_cast<std::int32_t>(at.row * kChannels4ph + static_cast<int>(at.channel));
    if (begin == nullptr) {
      test_all_4ph(t, at.row, at.channel, at.mode1,
                   [&](std::int32_t mode2, std::int32_t mode3, const Process4ph& process) {
                     const Listed4ph listed{channel_row, at.mode1, mode2, mode3};
                     add_process_4ph(
                         t, mode0, listed, process,
                         squared_element_by_blocks(t, at.channel, mode0, at.mode1, mode2, mode3),
                         out);
                   });
      return;
    }
    for (std::int64_t i = begin[index]; i < begin[index + 1]; ++i) {
      Process4ph process =
          test_candidate_4ph(t, at.channel, mode0, at.mode1, list[i].mode2, list[i].mode3);
      process.multiplicity *= t.partner_weight[point * t.mesh.size() + at.mode1 / t.n_branches];
      add_process_4ph(t, mode0, list[i], process, squared[i], out);
    }
  }
};

/// CountList4ph and FillList4ph on the threads of the host.
/// @param host  tables on the host
void count_list_on_host(const Tables4ph& host, std::int64_t first_row, std::int64_t n_indices,
                        std::int64_t* count);
void fill_list_on_host(const Tables4ph& host, std::int64_t first_row, std::int64_t n_indices,
                       const std::int64_t* begin, Listed4ph* list);

/// Sums of all rows and channels of a problem by a published strategy.
/// @param budget_bytes  for lists and partial sums: where the list of all modes does not fit, the
///                      rows are taken in parts
/// @return [n_rows][3 channels][SumLayout4ph]
/// @throws OutOfMemory if not even the list of one mode fits.
std::vector<double> published_sums_4ph(const Device& device, const Problem4ph& problem,
                                       PublishedStrategy strategy, std::int64_t budget_bytes,
                                       StrategySeconds& seconds);
/// The same on a CUDA device. @throws BackendAbsent in a build without CUDA.
std::vector<double> published_sums_4ph_cuda(const Device& device, const Problem4ph& problem,
                                            PublishedStrategy strategy, std::int64_t budget_bytes,
                                            StrategySeconds& seconds);

}  // namespace quasi::thermal
