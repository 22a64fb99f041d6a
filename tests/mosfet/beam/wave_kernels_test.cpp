// Tests the tables of the small-signal equations against differences along each direction, and
// their solution on every device against the CPU.

#include "workers/mosfet/kernels/wave/wave_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <memory>
#include <vector>

#include "tests/mosfet/beam/small_device.hpp"
#include "tests/support/every_device.hpp"
#include "workers/mosfet/kernels/wave/wave_noise_solver.hpp"
#include "workers/mosfet/kernels/wave/wave_solver.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"
#include "workers/mosfet/solver/beam/small_signal/wave_equations.hpp"

namespace quasi::mosfet {
namespace {

using test::SmallDevice;

// Returns a film with coarser cells, since equal tables need no accuracy.
Deck film(const std::vector<Setting>& settings) {
  std::vector<Setting> all{{"mesh.dh_ev", "0.05"}, {"mesh.nkappa", "3"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return test::small_film(all);
}

// Returns the largest difference of two Y over the largest entry.
double deviation(const Admittance& found, const Admittance& expected) {
  double largest = 0.0, difference = 0.0;
  for (std::size_t i = 0; i < kTerminals; ++i)
    for (std::size_t j = 0; j < kTerminals; ++j) {
      largest = std::max(largest, std::abs(expected.y[i][j]));
      difference = std::max(difference, std::abs(found.y[i][j] - expected.y[i][j]));
    }
  return difference / largest;
}

/// A model, the order of streaming and a frequency.
struct WaveCase {
  std::vector<Setting> settings;
  BeamOrder order = BeamOrder::kThird;
  double hz = 2e12;
};

class WaveTables : public testing::TestWithParam<WaveCase> {};

// The differences take levels at 1e-4 V to both sides, so that their errors are some 1e-7 of the
// derivatives. GMRES ends at 1e-10 in both.
TEST_P(WaveTables, AgreeWithDifferencesAlongEachDirection) {
  const SmallDevice small(film(GetParam().settings));
  const BiasPoint bias{0.4, 0.3};
  const BeamDevice device = small.device();
  ASSERT_TRUE(has_wave_tables(device));
  const BeamSteadyState state = small.steady(bias);
  const BeamSmallSignal tables(device, bias, state, {.order = GetParam().order}),
      differences(device, bias, state, {.order = GetParam().order, .takes_differences = true});
  EXPECT_LT(deviation(tables.at(GetParam().hz), differences.at(GetParam().hz)), 1e-7);
}

INSTANTIATE_TEST_SUITE_P(Models, WaveTables,
                         testing::Values(WaveCase{.settings = {{"mesh.subbands", "2"}}},
                                         WaveCase{.settings = {{"contact.inflow", "neutral"}}},
                                         WaveCase{.settings = {}, .order = BeamOrder::kFirst},
                                         WaveCase{.settings = {}, .hz = 0.0},
                                         WaveCase{.settings = {{"run.transport", "ballistic"}}}));

// Blocking, roughness and impurities have no tables.
TEST(WaveTables, AreRefusedWhereRatesDependOnMore) {
  const auto has = [](const std::vector<Setting>& settings) {
    return has_wave_tables(SmallDevice(film(settings)).device());
  };
  EXPECT_TRUE(has({}));
  EXPECT_FALSE(has({{"statistics.kind", "fermi"}}));
  EXPECT_FALSE(has({{"scattering.roughness.height_nm", "0.6"}}));
  EXPECT_FALSE(has({{"scattering.impurities", "true"}}));
}

class WaveKernelsOn : public test::OnEveryDevice {
 protected:
  WaveKernelsOn()
      : small_(film({{"mesh.subbands", "2"}, {"contact.inflow", "neutral"}})),
        device_(small_.device()),
        state_(small_.steady(bias_)) {}

  BeamSmallSignal response(const Device& processor) const {
    return BeamSmallSignal(device_, bias_, state_, {.device = processor});
  }

  const BiasPoint bias_{0.4, 0.3};
  SmallDevice small_;
  BeamDevice device_;
  BeamSteadyState state_;
};

// Both sides solve the same tables with the same function objects. Rounding differs by contracted
// products, and GMRES ends at 1e-10.
TEST_P(WaveKernelsOn, HaveTheAdmittancesOfTheHost) {
  const BeamSmallSignal host = response(find_device("cpu")), found = response(GetParam());
  for (const double hz : {0.0, 1e10, 1e12, 1e13})
    EXPECT_LT(deviation(found.at(hz), host.at(hz)), 1e-9) << hz;
}

TEST_P(WaveKernelsOn, RepeatTheirBitsInAnyOrderOfFrequencies) {
  const BeamSmallSignal once = response(GetParam()), again = response(GetParam());
  const Admittance low = once.at(1e9), high = once.at(3e12);
  EXPECT_EQ(again.at(3e12).y, high.y);
  EXPECT_EQ(again.at(1e9).y, low.y);
}

QUASI_ON_EVERY_DEVICE(WaveKernelsOn);

/// The host as the machine of a WaveSolver, which behaves as a device may: new memory holds no
/// numbers, and indices run in another order. It counts the bytes that it hands out.
struct CountingMachine {
  template <typename T>
  struct Array {
    std::shared_ptr<std::vector<T>> values = std::make_shared<std::vector<T>>();
    T* data() const { return values->data(); }
    std::size_t size() const { return values->size(); }
  };
  template <typename T>
  Array<T> make(std::size_t count, const char* what) const {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const std::vector<T> none(count, T{kNone, kNone});
    return upload(none.data(), count, what);
  }
  template <typename T>
  Array<T> upload(const T* values, std::size_t count, const char*) const {
    *bytes += static_cast<double>(count * sizeof(T));
    return {std::make_shared<std::vector<T>>(values, values + count)};
  }
  template <typename T>
  std::vector<T> download(const T* from, std::size_t count, const char*) const {
    return std::vector<T>(from, from + count);
  }
  template <typename Body>
  void run(std::int64_t count, const Body& body, const char*) const {
    for (std::int64_t number = count; number-- > 0;) body(number);
  }
  double* bytes = nullptr;
};

// Every product of the joint GMRES takes a direction. Small tables of states are not planned.
TEST(WaveMachine, HoldsThePlannedBytesAndMayHaveAnyOrderAndAnyOldMemory) {
  const SmallDevice small(film({{"contact.inflow", "neutral"}}));
  const BiasPoint bias{0.4, 0.3};
  const BeamDevice device = small.device();
  const WaveProblem problem = make_wave_problem(FieldResponse(device, bias, small.steady(bias)));
  double held = 0.0;
  WaveSolver<CountingMachine> solver(problem, {&held});
  const WaveResponses found = solver.respond(0.01);
  EXPECT_LT(held, 1.001 * wave_bytes(problem.shape, found.products));
  EXPECT_GT(held, 0.8 * wave_bytes(problem.shape, found.products));
  const WaveResponses expected = make_wave_kernels(problem, find_device("cpu"))->respond(0.01);
  // The compiler contracts products of the two machines differently.
  constexpr double kRounding = 1e-9;
  for (std::size_t column = 0; column < kWaveColumns; ++column) {
    const WaveResponse &one = found.of[column], &other = expected.of[column];
    for (std::size_t n = 0; n < kWaveContacts; ++n)
      EXPECT_LT(std::abs(one.current[n] - other.current[n]),
                kRounding * std::abs(expected.of[0].current[0]));
    for (std::size_t n = 0; n < one.potential_v.size(); ++n)
      ASSERT_LT(std::abs(one.potential_v[n] - other.potential_v[n]), kRounding) << n;
  }
}

// The kernels of the noise take a direction for every product, too.
TEST(WaveMachine, HoldsThePlannedBytesOfTheNoiseAndMayHaveAnyOrderAndAnyOldMemory) {
  const SmallDevice small(film({{"mesh.subbands", "2"}}));
  const BiasPoint bias{0.4, 0.3};
  const BeamDevice device = small.device();
  const FieldResponse response(device, bias, small.steady(bias), BeamOrder::kFirst);
  const WaveProblem problem = make_wave_problem(response);
  const WaveObservation observation = make_wave_observation(response, true);
  double held = 0.0;
  WaveNoiseSolver<CountingMachine> solver(problem, observation, {&held});
  const WaveNoise found = solver.at(0.01);
  EXPECT_LT(held, 1.001 * wave_noise_bytes(problem.shape, found.products));
  EXPECT_GT(held, 0.8 * wave_noise_bytes(problem.shape, found.products));
  const WaveNoise expected =
      make_wave_noise_kernels(problem, observation, find_device("cpu"))->at(0.01);
  for (std::size_t i = 0; i < kWaveContacts; ++i)
    for (std::size_t j = 0; j < kWaveContacts; ++j)
      EXPECT_LT(std::abs(found.density[i][j] - expected.density[i][j]),
                1e-8 * std::abs(expected.density[0][0]));
}

}  // namespace
}  // namespace quasi::mosfet
