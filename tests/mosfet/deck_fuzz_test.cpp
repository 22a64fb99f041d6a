// Tests randomly damaged decks: each is refused with a name or accepted, and none ends the program.

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/hostile_deck.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/mosfet/mosfet_task.hpp"

namespace quasi::mosfet {
namespace {

/// Every table that a deck may have.
constexpr const char* kDecks[]{R"(kind = "mosfet"
checkpoint_interval_s = 60.0
orientation = "110"
[geometry]
source_nm = 11.0
channel_nm = 10.0
drain_nm = 11.0
silicon_nm = 6.0
oxide_top_nm = 1.0
oxide_bottom_nm = 1.0
[doping]
contact_cm3 = 1e20
channel_cm3 = 1e13
smoothing_nm = 0.5
[gate]
workfunction_ev = 4.6
bottom_offset_v = 0.1
[material]
alpha_per_ev = 0.5
ml = 0.98
mt = 0.19
eps_si = 11.7
temperature_k = 300.0
[mesh]
nx = 33
nz = 33
subbands = 2
nw = 32
nphi = 12
wmax_ev = "auto"
[scattering]
set = "jacoboni-reggiani"
enabled = ["ac", "g3", "f2"]
scheme = "balanced"
impurities = true
[scattering.roughness]
height_nm = 0.3
spectrum = "gaussian"
[statistics]
kind = "fermi"
[contact]
potential = "neumann"
[bias]
vgs = [0.3, 0.6]
vds = [0.1, 0.4]
[run]
mode = "steady"
t_end_fs = 600.0
steady_tol = 5e-3
refresh_steps = 400
[output]
every_fs = 10.0
fields = ["current"]
)",
                               R"(kind = "mosfet"
[mesh]
nx = 33
nz = 17
snap = true
range = "full"
phi_flux = "split"
[[valley]]
mx = 0.19
my = 0.98
mz = 0.19
offset_ev = 0.1
[scattering]
set = "custom"
[[scattering.process]]
name = "opt"
kind = "g"
energy_mev = 60.0
coupling_1e8_ev_cm = 8.0
[bias]
points = [[0.6, 0.1], [0.6, 0.2]]
waveform_vgs = [[0.0, 0.0], [5.0, 0.1]]
[run]
mode = "transient"
transport = "boltzmann"
weno_epsilon = 1e-12
[output]
pdf_at_fs = [1.0, 2.0]
)"};

TEST(SpoiltDeck, IsRefusedByNameOrTaken) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "deck.toml";
  const auto task = make_mosfet_task();
  for (const char* sound : kDecks) {
    std::ofstream(path) << sound;
    ASSERT_NO_THROW(task->validate({.path = path, .settings = {}}, find_device("cpu"))) << sound;
  }
  test::HostileDeck hostile(test::fuzz_seed());
  std::string deck, change;
  // Every error names a key of one of the two decks; a syntax error names its line.
  const std::vector<std::string> names{"line ",    "unknown key", "kind",       "orientation",
                                       "geometry", "doping",      "gate",       "material",
                                       "mesh",     "scattering",  "statistics", "contact",
                                       "bias",     "run.",        "output",     "valley"};
  const auto tally = test::fuzz(
      600, names, 20.0,
      [&](int i) {
        deck = hostile.spoil(kDecks[i % 2], &change);
        std::ofstream(path, std::ios::binary) << deck;
        task->validate({.path = path, .settings = {}}, find_device("cpu"));
      },
      [&] { return change + "\n" + deck; });
  EXPECT_GE(tally.refused, 200);
  EXPECT_GE(tally.accepted, 50) << "decks that are nearly right are part of it";
}

}  // namespace
}  // namespace quasi::mosfet
