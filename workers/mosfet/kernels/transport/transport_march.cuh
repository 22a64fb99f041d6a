#pragma once

#include "workers/mosfet/kernels/transport/fast_quotient.cuh"
#include "workers/mosfet/kernels/transport/tile_thread.cuh"
#include "workers/mosfet/physics/gradient.hpp"
#include "workers/mosfet/physics/weno5.hpp"

namespace quasi::mosfet::cuda {

/// Loop of one block of transport_kernel along its segment of x: the state of a thread between
/// columns, and the steps of a column as named functions.
///
/// The loop is a software pipeline with one barrier for each column. While the fluxes of column i
/// are formed, column i−1 is finished with the fluxes that the previous barrier made visible,
/// column i−2 is summed, and plane i+1 is published.
/// See docs/theory/mosfet.md 5.3 for the equations.
template <bool kSplit, bool kFull, int kAngles>
class TransportMarch {
 public:
  /// @param shared  two frames (ColumnFrame) and kMaxColumns slopes
  __device__ __forceinline__ TransportMarch(const DeviceProblem& p, const DevicePoint& q,
                                            const StageBuffers& stage, const TransportShape& shape,
                                            double* shared)
      : p_(p), q_(q), stage_(stage), shape_(shape), at_(p, q, shape), shared_(shared) {
    const ColumnFrame frame(at_.tile, at_.n, kSplit);
    size_ = frame.size();
    rows_ = frame.rows;
    padded_ = frame.padded;
    slope_of_ = shared + 2 * size_;
    begin_ = blockIdx.z * shape.columns;
    end_ = min(p.nx, begin_ + shape.columns);
    plane_size_ = p.nw * at_.n;
    base_s_ = stage.pdf_s + static_cast<long long>(at_.state) * p.nx * plane_size_;
    per_dx_ = 1.0 / p.dx;
    per_dw_ = 1.0 / p.dw;
    dt_share_ = stage.share_s * q.clock->dt;
    find_places(frame);
    find_sums(frame);
  }

  __device__ __forceinline__ int begin() const { return begin_; }
  __device__ __forceinline__ int end() const { return end_; }
  /// Returns the offset of the frame that is not at offset `here`.
  __device__ __forceinline__ int other_frame(int here) const { return size_ - here; }

  /// Stores ε' plus the slope of τ_d ∂ε/∂t of the segment's columns in shared memory. A barrier
  /// must follow.
  __device__ __forceinline__ void load_slopes() {
    const double* row = q_.energy + static_cast<long long>(p_.family_of[at_.valley] * p_.subbands +
                                                           at_.state % p_.subbands) *
                                        p_.nx;
    const double* lead = q_.lead + (row - q_.energy);
    for (int k = threadIdx.x; k < end_ - begin_; k += blockDim.x)
      slope_of_[k] =
          gradient_at(row, begin_ + k, p_.nx, p_.dx) + gradient_at(lead, begin_ + k, p_.nx, p_.dx);
  }

  /// Reads the first planes, publishes the first one and forms the x flux at the left half node. A
  /// barrier must follow.
  __device__ __forceinline__ void open() {
    v0_ = value(begin_ - 3);
    v1_ = value(begin_ - 2);
    v2_ = value(begin_ - 1);
    v3_ = value(begin_);
    v4_ = value(begin_ + 1);
    v5_ = value(begin_ + 2);
    ahead_ = value(begin_ + kReach - 1);
    next_ = base_s_ + static_cast<long long>(begin_ + kReach) * plane_size_ + at_.index_lm;
    const double* plane = base_s_ + static_cast<long long>(begin_) * plane_size_;
    halo_from_ = plane + at_.halo_at;
    edge_from_ = plane + at_.edge_at;
    slope_ = slope_of_[0];
    publish(0, v3_, at_.fetches ? *halo_from_ : 0.0, at_.edge ? *edge_from_ : 0.0, slope_);
    flux_behind_ = x_flux();  // only the first segment counts this flux
    if (begin_ == 0 && at_.in_block) moved_[size_] = at_.weight_m * flux_behind_;
    halo_from_ += plane_size_;
    edge_from_ += plane_size_;
    if (begin_ + 1 < end_) fetch_halo();
    row_ = (static_cast<long long>(at_.state) * p_.nx + begin_ - 1) * p_.nw +
           (at_.row_exists ? at_.l : 0);
    cell_ = row_ * at_.n + at_.m;
  }

  /// Runs one phase of the pipeline for column i ≤ end(), with its frame at offset `here`. A
  /// barrier must follow.
  __device__ __forceinline__ void column(int i, int here) {
    const int there = other_frame(here);
    const bool finishes = at_.own() && i > begin_;
    const Unfinished before = unfinished(i, finishes);
    if (i < end_) {
      shift_planes(i);
      const double slope_next = i + 1 < end_ ? slope_of_[i + 1 - begin_] : 0.0;
      if (i + 1 < end_) publish_next(i, there, slope_next);
      if (i > begin_) flux_behind_ = flux_ahead_;
      form_fluxes(here);
      slope_ = slope_next;
    }
    if (i > begin_ || begin_ == 0) sum_current(i, there);
    if (i > begin_ + 1) sum_rows(here);
    if (finishes) finish(before, there);
    row_ += p_.nw;
    cell_ += plane_size_;
  }

  /// Sums the last column, which lies in the frame at offset `here`.
  __device__ __forceinline__ void close(int here) { sum_rows(here); }

 private:
  static constexpr int kReach = 4;  ///< planes i−3 … i+3: the x flux needs all but the last

  /// Values of column i−1 that the fluxes of column i overwrite and that its update reads.
  struct Unfinished {
    double old = 0.0, gain = 0.0, loss = 0.0;
    double w_flux, phi_flux, flux_before, flux_after, centre, slope;
  };

  // Finds this thread's positions in the first frame.
  __device__ __forceinline__ void find_places(const ColumnFrame& frame) {
    const int n = at_.n, r = at_.r, m = at_.m;
    own_speed_ = shared_ + (r + 2) * n + m;
    halo_target_ = shared_ + (r < 2 ? r : at_.tile + 1 + r) * n + m;
    own_angle_ = shared_ + frame.angles_at() + r * (n + 6) + 3 + m;
    w_flux_ = shared_ + frame.fluxes_at() + r * n + m;
    phi_flux_ = w_flux_ + rows_;
    result_ = phi_flux_ + rows_;
    moved_ = result_ + rows_;
  }

  __device__ __forceinline__ void find_sums(const ColumnFrame& frame) {
    lane_ = threadIdx.x & 31;
    warp_ = threadIdx.x / 32;
    partial_ = q_.current_partial +
               (static_cast<long long>(at_.state) * shape_.tiles + blockIdx.x) * (p_.nx + 1);
    sum_from_ = shared_ + frame.fluxes_at() + 2 * rows_;
    sum_to_ =
        q_.angle_sum + (static_cast<long long>(at_.state) * p_.nx + begin_) * p_.nw + at_.first - 1;
  }

  // Returns Φ at plane i, with the contacts' distributions beyond the ends.
  __device__ __forceinline__ double value(int i) const {
    if (i < 0 && at_.forward) return at_.inflow_source;
    if (i >= p_.nx && !at_.forward) return at_.inflow_drain;
    return base_s_[static_cast<long long>(min(max(i, 0), p_.nx - 1)) * plane_size_ + at_.index_lm];
  }

  __device__ __forceinline__ void fetch_halo() {
    if (at_.fetches) halo_ahead_ = *halo_from_;
    if (at_.edge) edge_ahead_ = *edge_from_;
  }

  // Writes a plane's vΦ and sin φ Φ (or its split halves) for the neighbours.
  __device__ __forceinline__ void publish(int frame_at, double centre, double halo,
                                          double lower_edge, double slope) const {
    own_speed_[frame_at] = at_.own_factor * (at_.edge ? lower_edge : centre);
    if (at_.fetches) halo_target_[frame_at] = at_.halo_factor * halo;
    double* plus = own_angle_ + frame_at;
    if constexpr (!kSplit) {
      const double g = at_.sin_m * centre;
      plus[0] = g;
      if (at_.ghost != 0) plus[at_.ghost] = -g;
      if (kAngles == 0 && at_.other_ghost != 0) plus[at_.other_ghost] = -g;
    } else {
      const double tilt = slope < 0.0 ? -at_.sin_m : at_.sin_m, half = 0.5 * centre;
      const double u = (tilt + 1.0) * half, d = (tilt - 1.0) * half;
      double* minus = plus + padded_;
      plus[0] = u;
      minus[0] = d;
      if (at_.ghost != 0) {
        plus[at_.ghost] = kFull ? u : -d;
        minus[at_.ghost] = kFull ? d : -u;
      }
      if (kAngles == 0 && at_.other_ghost != 0) {
        plus[at_.other_ghost] = -d;
        minus[at_.other_ghost] = -u;
      }
    }
  }

  // Publishes plane i+1 for the neighbours from values in registers, then reads the halo of the
  // next plane.
  __device__ __forceinline__ void publish_next(int i, int there, double slope_next) {
    publish(there, v3_, halo_ahead_, edge_ahead_, slope_next);
    if (i + 2 >= end_) return;
    halo_from_ += plane_size_;
    edge_from_ += plane_size_;
    fetch_halo();
  }

  __device__ __forceinline__ void shift_planes(int i) {
    v0_ = v1_;
    v1_ = v2_;
    v2_ = v3_;
    v3_ = v4_;
    v4_ = v5_;
    v5_ = ahead_;
    if (i + kReach < p_.nx) {
      ahead_ = *next_;
      next_ += plane_size_;
    } else if (!at_.forward) {
      ahead_ = at_.inflow_drain;  // electrons that leave keep the last plane's value
    }
  }

  // Returns F^x at the half node between v2 and v3, upwinded by cos φ.
  __device__ __forceinline__ double x_flux() const {
    const bool forward = at_.forward;
    return at_.x_factor * weno5({forward ? v0_ : v5_, forward ? v1_ : v4_, forward ? v2_ : v3_,
                                 forward ? v3_ : v2_, forward ? v4_ : v1_},
                                p_.weno_epsilon, FastQuotient{});
  }

  // Returns F^w at l+½, upwinded against ε' cos φ.
  __device__ __forceinline__ double w_flux(int here) const {
    const bool up_wind = at_.forward == (slope_ < 0.0);
    const int stride = up_wind ? at_.n : -at_.n;
    const double* h = own_speed_ + here + (up_wind ? -2 * at_.n : 3 * at_.n);
    return slope_ * at_.w_factor *
           weno5({h[0], h[stride], h[2 * stride], h[3 * stride], h[4 * stride]}, p_.weno_epsilon,
                 FastQuotient{});
  }

  // Returns F^φ at m+½ without its turning rate. On the half circle it is upwinded by ε' alone,
  // else it is split.
  __device__ __forceinline__ double phi_flux(int here) const {
    constexpr FastQuotient quotient{};
    const double epsilon = p_.weno_epsilon;
    if constexpr (!kSplit) {
      const bool left = slope_ >= 0.0;
      const double* g = own_angle_ + here + (left ? -2 : 3);
      const int one = left ? 1 : -1;
      const double flux =
          weno5({g[0], g[one], g[2 * one], g[3 * one], g[4 * one]}, epsilon, quotient);
      return left ? flux : -flux;
    } else {
      const double *g = own_angle_ + here, *d = g + padded_;
      return weno5({g[-2], g[-1], g[0], g[1], g[2]}, epsilon, quotient) +
             weno5({d[3], d[2], d[1], d[0], d[-1]}, epsilon, quotient);
    }
  }

  // Forms the three fluxes of column i, and their share of the neighbours' sums and differences.
  __device__ __forceinline__ void form_fluxes(int here) {
    flux_ahead_ = x_flux();
    along_w_ = w_flux(here);
    along_phi_ = phi_flux(here);
    w_flux_[here] = along_w_;
    phi_flux_[here] = along_phi_;
    if (at_.in_block) moved_[here] = at_.weight_m * flux_ahead_;
  }

  __device__ __forceinline__ Unfinished unfinished(int i, bool finishes) const {
    Unfinished u;
    if (finishes) {
      if (stage_.share_n != 0.0) u.old = stage_.pdf_n[cell_];
      if (p_.scatters) {
        u.gain = q_.gain[row_];
        u.loss = q_.loss[row_];
      }
    }
    u.w_flux = along_w_;
    u.phi_flux = along_phi_;
    u.flux_before = flux_behind_;
    u.flux_after = flux_ahead_;
    u.centre = v2_;
    u.slope = slope_of_[max(i - 1 - begin_, 0)];
    return u;
  }

  // Makes the Runge–Kutta update of column i−1, whose fluxes lie in the frame at offset `there`.
  __device__ __forceinline__ void finish(const Unfinished& u, int there) const {
    const double beside = phi_flux_[there + at_.turn];
    const double after = !kFull && at_.m == at_.n - 1 ? -beside : u.phi_flux;
    const double before = !kFull && at_.m == 0 ? -u.phi_flux : beside;
    const double rhs = u.gain - u.loss * u.centre - (u.flux_after - u.flux_before) * per_dx_ -
                       (u.w_flux - w_flux_[there - at_.n]) * per_dw_ -
                       fabs(u.slope) * at_.turning_l * (after - before);
    const double fresh = stage_.share_n * u.old + stage_.share_s * u.centre + dt_share_ * rhs;
    stage_.out[cell_] = fresh;
    result_[there] = at_.weight_m * fresh;
  }

  // Sums the current through a half node, with the last warp.
  __device__ __forceinline__ void sum_current(int half_node, int frame_at) const {
    if (warp_ != shape_.warps() - 1) return;
    const double* from = sum_from_ + frame_at + rows_;
    double sum = 0.0;
    for (int k = lane_; k < rows_; k += 32) sum += from[k];
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane_ == 0)
      partial_[half_node] = (stage_.first ? 0.0 : partial_[half_node]) + stage_.flux_weight * sum;
  }

  // Sums Φ̃ of a finished column with eight lanes for each row, in as many rounds as the tile
  // needs.
  __device__ __forceinline__ void sum_rows(int frame_at) {
    for (int row = 1 + warp_ * 4 + lane_ / 8; row - lane_ / 8 <= at_.tile;
         row += 4 * shape_.warps()) {
      const double* from = sum_from_ + frame_at + min(row, at_.tile) * at_.n;
      double sum = 0.0;
      for (int a = lane_ & 7; a < at_.n; a += 8) sum += from[a];
      for (int step = 4; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
      if ((lane_ & 7) == 0 && row <= at_.tile && at_.first - 1 + row < p_.nw) sum_to_[row] = sum;
      if constexpr (kAngles >= 8) break;  // eight lanes serve a row, so one round sums the tile
    }
    sum_to_ += p_.nw;
  }

  const DeviceProblem& p_;
  const DevicePoint& q_;
  const StageBuffers& stage_;
  const TransportShape& shape_;
  const TileThread<kFull, kAngles> at_;
  double* shared_;
  double* slope_of_;  ///< ε' of the segment's columns [kMaxColumns]
  int size_, rows_, padded_, begin_, end_, plane_size_, lane_, warp_;
  const double* base_s_;
  double per_dx_, per_dw_, dt_share_;
  double *own_speed_, *halo_target_, *own_angle_, *w_flux_, *phi_flux_, *result_, *moved_;
  double* partial_;
  const double* sum_from_;
  double* sum_to_;
  // Planes i−3 … i+2 of this thread's (l, m), the plane that is being read, and pointers to later
  // planes.
  double v0_, v1_, v2_, v3_, v4_, v5_, ahead_;
  const double *next_, *halo_from_, *edge_from_;
  double slope_;
  double flux_behind_, flux_ahead_ = 0.0, along_w_ = 0.0, along_phi_ = 0.0;
  double halo_ahead_ = 0.0, edge_ahead_ = 0.0;
  long long row_, cell_;  ///< (state, i, l) and (state, i, l, m) of the finished column
};

}  // namespace quasi::mosfet::cuda
