#include <cub/cub.cuh>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "workers/backend/device_buffer.cuh"
#include "workers/backend/launch_cuda.cuh"
#include "workers/backend/memory_budget.hpp"
#include "workers/thermal/kernels/evaluate_4ph_cuda.cuh"
#include "workers/thermal/kernels/pair_key_4ph.hpp"
#include "workers/thermal/kernels/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

namespace {

using cuda::DeviceBuffer;
using cuda4ph::Walk4ph;

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kGroup = 6;          ///< branches s' whose A a block holds at once, at most
constexpr int kBins = 4096;        ///< energy bins of one class in the index of a sorted table
constexpr int kBinShift = PairKeys4ph::kEnergyBits - 12;
static_assert(1 << (PairKeys4ph::kEnergyBits - kBinShift) == kBins);

/// Keys of a batch of total momenta, one kind; index = place·n_pairs + pair.
struct MakeKeys {
  Tables4ph tables;
  PairKeys4ph keys;
  PairKind4ph kind;
  std::int32_t first_total;
  std::int64_t n_pairs;
  std::uint32_t* key;
  std::int32_t* value;

  QUASI_HD void operator()(std::int64_t index) const {
    const auto place = static_cast<int>(index / n_pairs);
    const std::int64_t pair = index % n_pairs;
    key[index] = keys.key(tables, kind, first_total + place, place, pair);
    value[index] = static_cast<std::int32_t>(pair);
  }
};

/// First entry of each (place, class, bin), counted from the place's own start.
struct IndexBins {
  const std::uint32_t* key;
  std::int64_t n_pairs;
  std::int32_t* bin_begin;  ///< [places][classes][kBins + 1]

  QUASI_HD void operator()(std::int64_t index) const {
    const auto bin = static_cast<std::uint32_t>(index % (kBins + 1));
    const auto pair_class = static_cast<std::uint32_t>(index / (kBins + 1) % PairKeys4ph::kClasses);
    const std::int64_t place = index / (kBins + 1) / PairKeys4ph::kClasses;
    const std::uint32_t base = static_cast<std::uint32_t>(place)
                               << (PairKeys4ph::kClassBits + PairKeys4ph::kEnergyBits);
    // Bin kBins of a class is where the next class begins.
    const std::uint32_t value = base + (pair_class << PairKeys4ph::kEnergyBits) + (bin << kBinShift);
    bin_begin[index] =
        static_cast<std::int32_t>(lower_bound_key(key + place * n_pairs, n_pairs, value));
  }
};

/// q''' for every (place, q'') of one kind.
struct ThirdPoints {
  QMesh mesh;
  std::int32_t first_total;
  int sign;
  std::int32_t* point;

  QUASI_HD void operator()(std::int64_t index) const {
    point[index] = mesh.add(first_total + index / mesh.size(), index % mesh.size(), sign);
  }
};

/// Sorted pairs of a batch, one kind.
struct PairTables {
  const std::int32_t* pair;       ///< [places][n_pairs]
  const std::int32_t* bin_begin;  ///< [places][classes][kBins + 1]
  const std::int32_t* third;      ///< [places][n_q]
};

struct ScatterArguments {
  Tables4ph tables;
  PairKeys4ph keys;
  Walk4ph walk;
  const std::int32_t* walk_order;  ///< [n_pairs] the plan's number of each pair in walking order
  PairTables kind[2];              ///< by PairKind4ph
  std::int64_t n_pairs_table;
  std::int32_t first_total;
  int group;                       ///< s' held at once, ≤ kGroup
  double* partial;                 ///< [places][n_rows][channels][SumLayout4ph]
};

struct Queued {
  std::int32_t mode2;
  std::int32_t mode3;
  std::int32_t what;  ///< s' within the group · 4 + channel
  float unused;
  double multiplicity;
  double mismatch;
  double sigma;
};

/// A block finds and sums all processes of one mode λ with one q' = Q − q (kSign = 1: ++ and +-) or
/// q − Q (kSign = −1: --). Threads test candidates, accepted ones are lined up in a queue in the order
/// of the table, and whenever the queue holds one process per thread all threads evaluate them: no
/// lane idles in the expensive part, and nothing is ever stored outside the block.
template <int kSign, int kAtoms>
__global__ void __launch_bounds__(kThreads, kAtoms == 1 || kAtoms == 2 ? 4 : 2) scatter_kernel(const ScatterArguments a) {
  constexpr int kChannels = kSign > 0 ? 2 : 1;
  const Tables4ph& t = a.tables;
  const int nb = kAtoms > 0 ? 3 * kAtoms : t.n_branches;
  const SumLayout4ph layout{t.n_temperatures};
  const std::int64_t row = blockIdx.x % t.n_rows();
  const auto place = static_cast<int>(blockIdx.x / t.n_rows());
  const auto point = static_cast<std::int32_t>(row / nb);
  const std::int32_t q0 = t.point[point];
  const auto mode0 = static_cast<std::int32_t>(q0 * nb + row % nb);
  const std::int32_t total = a.first_total + place;
  const std::int32_t q1 = kSign > 0 ? t.mesh.add(total, q0, -1) : t.mesh.add(q0, total, -1);
  const int weight = t.partner_weight[static_cast<std::int64_t>(point) * t.mesh.size() + q1];
  double* out = a.partial + (blockIdx.x * static_cast<std::int64_t>(kChannels4ph) + (kSign > 0 ? 0 : 2)) *
                                layout.size();
  const double omega0 = t.omega[mode0];
  if (weight == 0 || !(omega0 > 0.0)) {
    for (int i = threadIdx.x; i < kChannels * layout.size(); i += kThreads) out[i] = 0.0;
    return;
  }

  extern __shared__ __align__(16) double shared[];
  auto* pair = reinterpret_cast<Complex<double>*>(shared);                 // [group][n_pairs][9]
  auto* partner = pair + static_cast<std::int64_t>(a.group) * t.n_pairs * 9;  // [group][nb]
  double* sum = reinterpret_cast<double*>(partner + a.group * nb);         // [warps][channels][layout]
  auto* queue = reinterpret_cast<Queued*>(sum + kWarps * kChannels * layout.size());  // [2 threads]
  __shared__ std::int32_t range_begin[kThreads];
  __shared__ std::int32_t range_first[kThreads + 1];  // candidates before the range
  __shared__ int warp_count[kWarps];
  using Scan = cub::BlockScan<std::int32_t, kThreads>;
  __shared__ typename Scan::TempStorage scan_storage;

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  for (int i = threadIdx.x; i < kWarps * kChannels * layout.size(); i += kThreads) sum[i] = 0.0;

  for (int first_branch = 0; first_branch < nb; first_branch += a.group) {
    const int branches = min(a.group, nb - first_branch);
    // One interval of the table per (s', channel, class).
    const int n_ranges = branches * kChannels * PairKeys4ph::kClasses;
    std::int32_t length = 0;
    if (threadIdx.x < n_ranges) {
      const int pair_class = threadIdx.x % PairKeys4ph::kClasses;
      const int channel = threadIdx.x / PairKeys4ph::kClasses % kChannels;
      const int branch = threadIdx.x / PairKeys4ph::kClasses / kChannels;
      const std::int32_t mode1 = q1 * nb + first_branch + branch;
      const double omega1 = t.omega[mode1];
      const auto kind = kSign > 0 && channel == 0 ? PairKind4ph::kDifference : PairKind4ph::kSum;
      const double energy = omega0 + kSign * omega1;
      std::int32_t begin = 0;
      if (omega1 > 0.0 && (kind == PairKind4ph::kDifference || energy > 0.0)) {
        const double reach = a.keys.reach(t.rules, pair_class, t.p(mode0), t.p(mode1));
        const std::uint32_t low = a.keys.energy_key(kind, energy - reach);
        const std::uint32_t high = a.keys.energy_key(kind, energy + reach);
        const std::int32_t* bins = a.kind[static_cast<int>(kind)].bin_begin +
                                   (static_cast<std::int64_t>(place) * PairKeys4ph::kClasses + pair_class) *
                                       (kBins + 1);
        // One step of the key for rounding, as PairKeys4ph::interval.
        begin = bins[(low > 0 ? low - 1 : 0) >> kBinShift];
        length = bins[min((high + 1) >> kBinShift, kBins - 1u) + 1] - begin;
      }
      range_begin[threadIdx.x] = begin;
    }
    std::int32_t before;
    std::int32_t n_candidates;
    Scan(scan_storage).ExclusiveSum(length, before, n_candidates);
    range_first[threadIdx.x] = before;
    if (threadIdx.x == 0) range_first[kThreads] = n_candidates;
    for (int i = threadIdx.x; i < branches * nb; i += kThreads) {
      const Complex<double> e =
          t.eigenvector[static_cast<std::int64_t>(q1 * nb + first_branch + i / nb) * nb + i % nb];
      partner[i] = {e.re, kSign * e.im};
    }
    __syncthreads();
    if (n_candidates == 0) continue;  // the same for all threads

    // Step 2 of the plan: A of every s' of the group, one element a thread.
    const Complex<double>* contracted = t.contracted + row * t.n_triples * 27;
    for (int element = threadIdx.x; element < t.n_pairs * 9; element += kThreads) {
      Complex<double> accumulated[kGroup] = {};
      const int from = a.walk_order[element / 9];
      for (int triple = t.pair_begin[from]; triple < t.pair_begin[from + 1]; ++triple) {
        Complex<double> phase =
            t.phase[static_cast<std::int64_t>(q1) * t.n_cells + t.triple_cell[triple]];
        phase.im *= kSign;
        const Complex<double>* e = partner + 3 * t.triple_atom[triple];
        for (int b = 0; b < 3; ++b) {
          const Complex<double> c = cuda4ph::fused_multiply(
              phase, cuda4ph::load(contracted + 27 * static_cast<std::int64_t>(triple) + 9 * b + element % 9));
#pragma unroll
          for (int g = 0; g < kGroup; ++g)
            if (g < branches) cuda4ph::fused_add(accumulated[g], e[g * nb + b], c);
        }
      }
#pragma unroll
      for (int g = 0; g < kGroup; ++g)
        if (g < branches) pair[g * t.n_pairs * 9 + element] = accumulated[g];
    }

    int queued = 0;  // the same in all threads
    const auto evaluate = [&](int count) {
      Queued process{};
      int channel = -1;
      double values_squared = 0.0, density = 0.0, delta = 0.0;
      std::int32_t mode1 = 0;
      bool normal = false;
      if (static_cast<int>(threadIdx.x) < count) {
        process = queue[threadIdx.x];
        channel = process.what % 4;
        const int branch = process.what / 4;
        mode1 = q1 * nb + first_branch + branch;
        const auto kind = static_cast<Channel4ph>(kSign > 0 ? channel : 2);
        values_squared = cuda4ph::squared_element<kAtoms>(
            t, a.walk, pair + branch * t.n_pairs * 9, process.mode2, process.mode3,
            static_cast<double>(sign_third(kind)));
        delta = process.multiplicity *
                delta_4ph_ps(t.rules, {process.multiplicity, process.mismatch, process.sigma});
        const double omega[4] = {omega0, t.omega[mode1], t.omega[process.mode2], t.omega[process.mode3]};
        density = delta * inverse_omega_product_4ph(t.rules, omega);
        normal = is_normal_4ph(t, kind, q0, q1, process.mode2 / nb, process.mode3 / nb);
      }
      const auto add = [&](int c, int slot, double value) {
        for (int offset = 16; offset > 0; offset /= 2)
          value += __shfl_xor_sync(0xffffffffu, value, offset);
        if (lane == 0) sum[(warp * kChannels + c) * layout.size() + slot] += value;
      };
      for (int c = 0; c < kChannels; ++c) {
        const bool mine = channel == c;
        if (__ballot_sync(0xffffffffu, mine) == 0) continue;
        for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
          double w = 0.0;
          if (mine) {
            const double* n = t.occupation + temperature * t.n_modes();
            w = density * bose_factor_4ph(static_cast<Channel4ph>(kSign > 0 ? c : 2), n[mode1],
                                          n[process.mode2], n[process.mode3]);
          }
          add(c, layout.normal(temperature), normal ? w * values_squared : 0.0);
          add(c, layout.umklapp(temperature), normal ? 0.0 : w * values_squared);
          add(c, layout.weighted_phase_space(temperature), w);
        }
        add(c, layout.phase_space(), mine ? delta : 0.0);
        add(c, layout.six_count(), mine ? rint(6.0 * process.multiplicity) : 0.0);
        const unsigned here = __ballot_sync(0xffffffffu, mine);
        if (lane == 0) sum[(warp * kChannels + c) * layout.size() + layout.evaluations()] += __popc(here);
      }
    };

    for (std::int32_t base = 0; base < n_candidates; base += kThreads) {
      const std::int32_t candidate = base + static_cast<std::int32_t>(threadIdx.x);
      Queued found{};
      if (candidate < n_candidates) {
        int low = 0;
        int high = n_ranges;  // the last range that starts at or before the candidate
        while (high - low > 1) {
          const int middle = (low + high) / 2;
          if (range_first[middle] <= candidate) low = middle;
          else high = middle;
        }
        const int channel = low / PairKeys4ph::kClasses % kChannels;
        const int branch = low / PairKeys4ph::kClasses / kChannels;
        const auto kind = static_cast<Channel4ph>(kSign > 0 ? channel : 2);
        const PairTables& table = a.kind[sign_third(kind) > 0 ? 0 : 1];
        const std::int32_t index =
            table.pair[place * a.n_pairs_table + range_begin[low] + (candidate - range_first[low])];
        const std::int32_t mode2 = index / nb;
        const std::int32_t mode3 =
            table.third[place * t.mesh.size() + mode2 / nb] * nb + index % nb;
        const Process4ph process = test_candidate_4ph(t, kind, mode0, q1 * nb + first_branch + branch,
                                                      mode2, mode3);
        found = {mode2, mode3, branch * 4 + channel, 0.0f, process.multiplicity * weight,
                 process.mismatch_rad_ps, process.sigma_rad_ps};
      }
      const bool accepted = found.multiplicity > 0.0;
      const unsigned votes = __ballot_sync(0xffffffffu, accepted);
      if (lane == 0) warp_count[warp] = __popc(votes);
      __syncthreads();
      int at = queued + __popc(votes & ((1u << lane) - 1u));
      int accepted_in_block = 0;
      for (int w = 0; w < kWarps; ++w) {
        if (w < warp) at += warp_count[w];
        accepted_in_block += warp_count[w];
      }
      if (accepted) queue[at] = found;
      queued += accepted_in_block;
      __syncthreads();
      if (queued >= kThreads) {
        evaluate(kThreads);
        __syncthreads();
        queued -= kThreads;
        if (static_cast<int>(threadIdx.x) < queued) queue[threadIdx.x] = queue[kThreads + threadIdx.x];
        __syncthreads();
      }
    }
    evaluate(queued);
    __syncthreads();
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kChannels * layout.size(); i += kThreads) {
    double value = 0.0;
    for (int w = 0; w < kWarps; ++w) value += sum[w * kChannels * layout.size() + i];
    out[i] = value;
  }
}

/// total += partial of every place, in order.
struct AddPlaces {
  const double* partial;
  std::int64_t n_values;
  int places;
  double* total;

  QUASI_HD void operator()(std::int64_t index) const {
    double value = total[index];
    for (int place = 0; place < places; ++place) value += partial[place * n_values + index];
    total[index] = value;
  }
};

/// A walk through the cells of the plan by single lattice vectors, nearest unvisited cell next.
struct HostWalk {
  std::vector<std::int32_t> step, first, atoms, order;
};

HostWalk walk_through(const ContractionPlan4ph& plan) {
  struct Stop {
    Index3 cell;
    std::vector<std::int32_t> pairs;
  };
  std::vector<Stop> left;
  for (int pair = 0; pair < plan.n_pairs; ++pair) {
    const std::int32_t* c = &plan.cell[static_cast<std::size_t>(3 * plan.pair_cell[pair])];
    const Index3 cell{c[0], c[1], c[2]};
    auto stop = std::find_if(left.begin(), left.end(), [&](const Stop& s) { return s.cell == cell; });
    if (stop == left.end()) stop = left.insert(left.end(), {cell, {}});
    stop->pairs.push_back(pair);
  }
  HostWalk walk;
  Index3 here{0, 0, 0};
  const auto distance = [&](const Stop& s) {
    return std::abs(s.cell[0] - here[0]) + std::abs(s.cell[1] - here[1]) + std::abs(s.cell[2] - here[2]);
  };
  while (!left.empty()) {
    const auto next = std::min_element(left.begin(), left.end(), [&](const Stop& a, const Stop& b) {
      return distance(a) < distance(b) || (distance(a) == distance(b) && a.cell < b.cell);
    });
    do {  // at least one step, which may be to stay
      std::int32_t direction = 0;
      for (int i = 0; i < 3 && direction == 0; ++i)
        if (next->cell[i] != here[i]) {
          direction = next->cell[i] > here[i] ? i + 1 : -(i + 1);
          here[i] += direction > 0 ? 1 : -1;
        }
      walk.step.push_back(direction);
      walk.first.push_back(static_cast<std::int32_t>(walk.order.size()));
    } while (distance(*next) > 0);
    std::sort(next->pairs.begin(), next->pairs.end(), [&](std::int32_t a, std::int32_t b) {
      return std::pair(plan.pair_third[a], plan.pair_fourth[a]) <
             std::pair(plan.pair_third[b], plan.pair_fourth[b]);
    });
    for (const std::int32_t pair : next->pairs) {
      walk.atoms.push_back(plan.pair_third[pair] * 256 + plan.pair_fourth[pair]);
      walk.order.push_back(pair);
    }
    left.erase(next);
  }
  walk.first.push_back(static_cast<std::int32_t>(walk.order.size()));
  return walk;
}

template <typename T>
DeviceBuffer<T> upload(const std::vector<T>& host, const char* what) {
  return DeviceBuffer<T>(host, what);
}

class CudaScatteringKernels4ph : public ScatteringKernels4ph {
 public:
  CudaScatteringKernels4ph(const Device& device, std::int64_t memory_budget_bytes)
      : device_(device), budget_bytes_(memory_budget_bytes) {
    use_device(device_);
    if (budget_bytes_ <= 0)
      budget_bytes_ = std::min<std::int64_t>(kDefaultBudget_bytes, free_memory_bytes(device_) * 9 / 10);
  }

  void load(const Problem4ph& p) override {
    use_device(device_);
    if (p.plan.n_atoms > 255) throw InvalidInput("four phonons on CUDA: more than 255 atoms in the cell");
    t_ = p.host_tables();
    omega_ = upload(p.omega_rad_ps, "ω");
    set_ = upload(p.set, "degenerate sets");
    spread_ = upload(p.spread_rad_ps, "mode spreads");
    occupation_ = upload(p.occupation, "occupations");
    eigenvector_ = DeviceBuffer<Complex<double>>(p.eigenvector.size(), "eigenvectors");
    eigenvector_.copy_from(reinterpret_cast<const Complex<double>*>(p.eigenvector.data()),
                           p.eigenvector.size(), "eigenvectors");
    zone_ = upload(p.zone, "zone coordinates");
    point_ = upload(p.point, "points");
    partner_weight_ = upload(p.partner_weight, "weights of q'");
    tensor_ = upload(p.plan.tensor, "fourth-order constants");
    const std::vector<std::int32_t>* lists[kLists] = {
        &p.plan.block_atom, &p.plan.block_cell, &p.plan.triple_begin, &p.plan.triple_atom,
        &p.plan.triple_cell, &p.plan.pair_begin, &p.plan.pair_third, &p.plan.pair_fourth,
        &p.plan.pair_cell};
    for (int i = 0; i < kLists; ++i) list_[i] = upload(*lists[i], "contraction plan");
    phase_ = DeviceBuffer<Complex<double>>(p.phase.size() / 2, "phases");
    phase_.copy_from(reinterpret_cast<const Complex<double>*>(p.phase.data()), p.phase.size() / 2, "phases");
    t_.omega = omega_.data();
    t_.set = set_.data();
    t_.spread = spread_.data();
    t_.occupation = occupation_.data();
    t_.eigenvector = eigenvector_.data();
    t_.zone = zone_.data();
    t_.point = point_.data();
    t_.partner_weight = partner_weight_.data();
    t_.tensor = tensor_.data();
    const std::int32_t** views[kLists] = {&t_.block_atom, &t_.block_cell, &t_.triple_begin,
                                          &t_.triple_atom, &t_.triple_cell, &t_.pair_begin,
                                          &t_.pair_third, &t_.pair_fourth, &t_.pair_cell};
    for (int i = 0; i < kLists; ++i) *views[i] = list_[i].data();
    t_.phase = phase_.data();

    contracted_ = DeviceBuffer<Complex<double>>(
        static_cast<std::size_t>(t_.n_rows() * t_.n_triples * 27), "constants contracted with λ");
    cuda::for_each_index(static_cast<std::int64_t>(contracted_.size()),
                         ContractFirst4ph{t_, contracted_.data()}, "contraction with λ");
    t_.contracted = contracted_.data();

    const HostWalk walk = walk_through(p.plan);
    std::vector<Complex<double>> base(static_cast<std::size_t>(3 * p.mesh.size()));
    for (std::int64_t q = 0; q < p.mesh.size(); ++q) {
      int c[3];
      p.mesh.coordinates(q, c);
      for (int i = 0; i < 3; ++i) {
        const double angle = 2.0 * units::kPi * c[i] / p.mesh.n[i];
        base[static_cast<std::size_t>(3 * q + i)] = {std::cos(angle), std::sin(angle)};
      }
    }
    stops_ = 0;
    for (std::size_t s = 0; s < walk.step.size(); ++s) stops_ += walk.first[s + 1] > walk.first[s];
    walk_step_ = upload(walk.step, "walk");
    walk_first_ = upload(walk.first, "walk");
    walk_atoms_ = upload(walk.atoms, "walk");
    walk_order_ = upload(walk.order, "walk");
    walk_base_ = upload(base, "walk");
    walk_ = {static_cast<int>(walk.step.size()), walk_step_.data(), walk_first_.data(),
             walk_atoms_.data(), walk_base_.data()};

    double largest_omega = 0.0;
    double largest_spread = 0.0;
    for (std::size_t m = 0; m < p.omega_rad_ps.size(); ++m) {
      if (!(p.omega_rad_ps[m] > 0.0)) continue;
      largest_omega = std::max(largest_omega, p.omega_rad_ps[m]);
      const double* s = &p.spread_rad_ps[3 * m];
      largest_spread = std::max(largest_spread, s[0] * s[0] + s[1] * s[1] + s[2] * s[2]);
    }
    keys_ = PairKeys4ph::make(p.rules, largest_omega, largest_spread);
    choose_group();

    n_pairs_ = p.mesh.size() * p.n_branches * p.n_branches;
    batch_ = static_cast<std::int32_t>(std::min<std::int64_t>(
        PairKeys4ph::kBatch, items_that_fit(budget_bytes_, resident_bytes(p), batch_bytes(p),
                                            "four-phonon scattering")));
    batch_ = std::min(batch_, static_cast<std::int32_t>(p.mesh.size()));
    const auto entries = static_cast<std::size_t>(n_pairs_ * batch_);
    for (int k = 0; k < 2; ++k) {
      key_[k] = DeviceBuffer<std::uint32_t>(entries, "keys of last pairs");
      spare_value_[k] = DeviceBuffer<std::int32_t>(k == 0 ? entries : 0, "last pairs");
      pair_[k] = DeviceBuffer<std::int32_t>(entries, "last pairs");
      bin_begin_[k] = DeviceBuffer<std::int32_t>(
          static_cast<std::size_t>(batch_) * PairKeys4ph::kClasses * (kBins + 1), "index of last pairs");
      third_[k] = DeviceBuffer<std::int32_t>(static_cast<std::size_t>(batch_ * p.mesh.size()), "points q'''");
    }
    std::size_t bytes = 0;
    cuda::check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, key_[0].data(), key_[1].data(),
                                                spare_value_[0].data(), pair_[0].data(),
                                                static_cast<std::int64_t>(entries)),
                "sorting last pairs");
    sort_storage_ = DeviceBuffer<unsigned char>(bytes, "work space of the sort");
    n_values_ = t_.n_rows() * kChannels4ph * SumLayout4ph{t_.n_temperatures}.size();
    partial_ = DeviceBuffer<double>(static_cast<std::size_t>(n_values_ * batch_), "sums by total momentum");
    total_ = DeviceBuffer<double>(static_cast<std::size_t>(n_values_), "sums");
  }

  std::vector<double> sums(std::int32_t first_total, std::int32_t last_total) override {
    use_device(device_);
    total_.zero("sums");
    for (std::int32_t first = first_total; first < last_total; first += batch_)
      add_batch(first, std::min(batch_, last_total - first));
    return cuda::to_host(total_, "four-phonon scattering");
  }

  std::int64_t multiply_adds_per_process() const override {
    // One phase a step, e'' times the phase at every cell, nine for each pair, e''' at the end.
    return walk_.n_steps + 3LL * t_.n_atoms * stops_ + 9LL * t_.n_pairs + 3LL * t_.n_atoms;
  }

  std::int64_t memory_bytes(const Problem4ph& p) const override {
    return resident_bytes(p) + std::min<std::int64_t>(PairKeys4ph::kBatch, p.mesh.size()) * batch_bytes(p);
  }

 private:
  static constexpr int kLists = 9;
  static constexpr std::int64_t kDefaultBudget_bytes = std::int64_t{8} << 30;
  static constexpr int kSharedGoal_bytes = 48 << 10;   ///< several blocks on a multiprocessor
  static constexpr int kSharedLimit_bytes = 200 << 10;

  static std::int64_t resident_bytes(const Problem4ph& p) {
    const std::int64_t rows = static_cast<std::int64_t>(p.point.size()) * p.n_branches;
    return rows * p.plan.n_triples * 27 * 16 + static_cast<std::int64_t>(p.phase.size()) * 8 +
           static_cast<std::int64_t>(p.eigenvector.size()) * 16 +
           static_cast<std::int64_t>(p.omega_rad_ps.size() * 4 + p.occupation.size()) * 8 +
           static_cast<std::int64_t>(p.partner_weight.size()) * 2 + (std::int64_t{64} << 20);
  }
  /// Of one total momentum.
  static std::int64_t batch_bytes(const Problem4ph& p) {
    const std::int64_t pairs = p.mesh.size() * p.n_branches * p.n_branches;
    const std::int64_t rows = static_cast<std::int64_t>(p.point.size()) * p.n_branches;
    return pairs * 20 + 2 * PairKeys4ph::kClasses * (kBins + 1) * 4 + p.mesh.size() * 8 +
           rows * kChannels4ph * SumLayout4ph{static_cast<int>(p.temperatures_k.size())}.size() * 8;
  }

  int shared_bytes(int group, int channels) const {
    return group * t_.n_pairs * 9 * 16 + group * t_.n_branches * 16 +
           kWarps * channels * SumLayout4ph{t_.n_temperatures}.size() * 8 +
           2 * kThreads * static_cast<int>(sizeof(Queued));
  }

  void choose_group() {
    group_ = std::min(kGroup, t_.n_branches);
    while (group_ > 1 && shared_bytes(group_, 2) > kSharedGoal_bytes) --group_;
    if (shared_bytes(group_, 2) > kSharedLimit_bytes)
      throw InvalidInput("four phonons on CUDA: " + std::to_string(t_.n_pairs) +
                         " distinct pairs of third and fourth atoms (or " +
                         std::to_string(t_.n_temperatures) +
                         " temperatures) need more shared memory than a block has; use device cpu, or "
                         "force constants of shorter range");
  }

  void sort_batch(PairKind4ph kind, std::int32_t first, std::int32_t places) {
    // Keys are of use only while sorting: both kinds share their buffers.
    const int k = static_cast<int>(kind);
    const std::int64_t entries = n_pairs_ * places;
    cuda::for_each_index(entries,
                         MakeKeys{t_, keys_, kind, first, n_pairs_, key_[0].data(), spare_value_[0].data()},
                         "keys of last pairs");
    std::size_t bytes = sort_storage_.size();
    cuda::check(cub::DeviceRadixSort::SortPairs(sort_storage_.data(), bytes, key_[0].data(),
                                                key_[1].data(), spare_value_[0].data(),
                                                pair_[k].data(), entries),
                "sorting last pairs");
    cuda::for_each_index(static_cast<std::int64_t>(places) * PairKeys4ph::kClasses * (kBins + 1),
                         IndexBins{key_[1].data(), n_pairs_, bin_begin_[k].data()}, "index of last pairs");
    cuda::for_each_index(places * t_.mesh.size(),
                         ThirdPoints{t_.mesh, first, kind == PairKind4ph::kSum ? -1 : 1, third_[k].data()},
                         "points q'''");
  }

  template <int kSign, int kAtoms>
  void scatter(const ScatterArguments& arguments, std::int32_t places) {
    const int bytes = shared_bytes(group_, kSign > 0 ? 2 : 1);
    cuda::check(cudaFuncSetAttribute(scatter_kernel<kSign, kAtoms>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                "four-phonon scattering");
    scatter_kernel<kSign, kAtoms>
        <<<static_cast<unsigned>(places * t_.n_rows()), kThreads, bytes>>>(arguments);
    cuda::check_launch("four-phonon scattering");
  }

  void add_batch(std::int32_t first, std::int32_t places) {
    sort_batch(PairKind4ph::kDifference, first, places);
    sort_batch(PairKind4ph::kSum, first, places);
    ScatterArguments arguments{.tables = t_,
                               .keys = keys_,
                               .walk = walk_,
                               .walk_order = walk_order_.data(),
                               .kind = {},
                               .n_pairs_table = n_pairs_,
                               .first_total = first,
                               .group = group_,
                               .partial = partial_.data()};
    for (int k = 0; k < 2; ++k)
      arguments.kind[k] = {pair_[k].data(), bin_begin_[k].data(), third_[k].data()};
    switch (t_.n_atoms) {
      case 1: scatter<1, 1>(arguments, places); scatter<-1, 1>(arguments, places); break;
      case 2: scatter<1, 2>(arguments, places); scatter<-1, 2>(arguments, places); break;
      case 3: scatter<1, 3>(arguments, places); scatter<-1, 3>(arguments, places); break;
      case 4: scatter<1, 4>(arguments, places); scatter<-1, 4>(arguments, places); break;
      default: scatter<1, 0>(arguments, places); scatter<-1, 0>(arguments, places); break;
    }
    cuda::for_each_index(n_values_, AddPlaces{partial_.data(), n_values_, places, total_.data()},
                         "sums by total momentum");
  }

  Device device_;
  std::int64_t budget_bytes_ = 0;
  Tables4ph t_;
  PairKeys4ph keys_{};
  Walk4ph walk_{};
  int stops_ = 0;  ///< cells of the walk that have pairs
  int group_ = 1;
  std::int64_t n_pairs_ = 0;
  std::int64_t n_values_ = 0;
  std::int32_t batch_ = 1;
  DeviceBuffer<double> omega_, spread_, occupation_, tensor_, partial_, total_;
  DeviceBuffer<Complex<double>> eigenvector_, phase_, contracted_, walk_base_;
  DeviceBuffer<std::int16_t> zone_;
  DeviceBuffer<std::int32_t> set_, point_, list_[kLists], walk_step_, walk_first_, walk_atoms_, walk_order_;
  DeviceBuffer<std::uint16_t> partner_weight_;
  DeviceBuffer<std::uint32_t> key_[2];
  DeviceBuffer<std::int32_t> spare_value_[2], pair_[2], bin_begin_[2], third_[2];
  DeviceBuffer<unsigned char> sort_storage_;
};

}  // namespace

std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph_cuda(
    const Device& device, std::int64_t memory_budget_bytes) {
  return std::make_unique<CudaScatteringKernels4ph>(device, memory_budget_bytes);
}

}  // namespace quasi::thermal
