#include "workers/gw/output/dataset_table.hpp"

#include "workers/io/dataset_descriptions.hpp"

namespace quasi::gw {
namespace {

constexpr ResultAxis kAxes[] = {
    {"state", "/quasiparticles/state"},
    {"reciprocal_vector", "", "b1 b2 b3"},
    {"q"},
    {"frequency"},
    {"entry"},
    {"energy", "energy_ev"},
    {"band"},
    {"band_2"},
    {"spectrum"},
    {"edge", "", "first last"},
    {"setting", "setting"},
    {"shared_state", "state"},
};

constexpr DatasetDescription kDatasets[] = {
    {"/quasiparticles/state", "state", "k-point, spin and band of each row"},
    {"/quasiparticles/k", "state reciprocal_vector", "k-points in units of the reciprocal vectors"},
    {"/quasiparticles/band", "state", "band, counted from 1"},
    {"/quasiparticles/spin", "state", "spin, counted from 1"},
    {"/quasiparticles/mean_field_ev", "state", "energy of the mean field"},
    {"/quasiparticles/x_ev", "state", "bare exchange X"},
    {"/quasiparticles/sx_ev", "state", "SX - X: screened less bare exchange, or the residues"},
    {"/quasiparticles/ch_ev", "state",
     "Coulomb hole CH, or the integral of a full-frequency method"},
    {"/quasiparticles/sigma_ev", "state", "self-energy at the energy of the mean field"},
    {"/quasiparticles/z", "state", "renormalisation factor of the linearised solution"},
    {"/quasiparticles/vxc_ev", "state", "exchange-correlation potential of the mean field"},
    {"/quasiparticles/qp0_ev", "state", "E_mf + Sigma - V_xc"},
    {"/quasiparticles/qp1_ev", "state", "quasiparticle energy by the chosen solution"},
    {"/epsilon/q", "q reciprocal_vector", "q-points in units of the reciprocal vectors"},
    {"/epsilon/head", "q", "head of the static dielectric matrix"},
    {"/epsilon/head_inverse", "q", "head of the static inverse"},
    {"/epsilon/frequencies", "frequency complex", "complex frequencies of the dielectric matrix"},
    {"/epsilon/head_inverse_of_frequency", "q frequency complex",
     "head of the inverse at each frequency"},
    {"/epsilon/macroscopic_tensor", "frequency cartesian cartesian_2 complex",
     "macroscopic dielectric tensor"},
    {"/self_test/*/value", "entry", "value of the checked law"},
    {"/self_test/*/passed", "entry", "1 if the law holds, else 0"},
    {"/sigma_matrix/*/k", "reciprocal_vector", "k-point in units of the reciprocal vectors"},
    {"/sigma_matrix/*/energy_ev", "energy", "energies of the matrix"},
    {"/sigma_matrix/*/x_ev", "band band_2 complex", "bare exchange between the outer states"},
    {"/sigma_matrix/*/correlation_ev", "energy band band_2 complex",
     "Sigma less X between the outer states"},
    {"/spectra/k", "spectrum reciprocal_vector", "k-points in units of the reciprocal vectors"},
    {"/spectra/bands", "spectrum edge", "first and last band of each multiplet"},
    {"/spectra/spin", "spectrum", "spin, counted from 1"},
    {"/spectra/energy_ev", "spectrum energy", "energies of each spectrum"},
    {"/spectra/sigma_ev", "spectrum energy complex", "self-energy"},
    {"/spectra/spectral_function", "spectrum energy", "spectral function A(E)"},
    {"/errors/blocks", "entry", "blocks of random vectors of the jackknife"},
    {"/errors/estimate", "state", "energy of each state without the bias of first order"},
    {"/errors/half_width", "state", "half of the 95 % interval of each energy"},
    {"/errors/gap_estimate", "entry", "gap without the bias; without V_xc its change by Sigma"},
    {"/errors/gap_half_width", "entry", "half of the 95 % interval of the gap"},
    {"/errors/*/value", "state", "named error of each energy"},
    {"/errors/*/gap", "entry", "named error of the gap"},
    {"/errors/systematic", "state", "sum of the examined systematic errors of each energy"},
    {"/errors/systematic_gap", "entry", "sum of the examined systematic errors of the gap"},
    {"/errors/not_examined", "entry", "names of the errors that are not examined"},
    {"/convergence/added", "state", "change of each energy by the limits of all axes"},
    {"/convergence/error", "state", "sum of the errors of these limits"},
    {"/convergence/*/setting", "setting",
     "values of the varied parameter; the last one is the deck's"},
    {"/convergence/*/state", "shared_state",
     "rows of quasiparticles that every calculation holds, from 0"},
    {"/convergence/*/qp1", "setting shared_state", "quasiparticle energies at each value"},
    {"/convergence/*/sigma", "setting shared_state", "self-energies at each value"},
    {"/convergence/*/limit", "shared_state", "limit of the energies"},
    {"/convergence/*/limit_error", "shared_state", "error bar of that limit"},
};

}  // namespace

void describe_result(H5Writer* file) { describe_datasets(kAxes, kDatasets, file); }

}  // namespace quasi::gw
