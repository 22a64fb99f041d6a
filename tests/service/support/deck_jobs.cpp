#include "tests/service/support/deck_jobs.hpp"

#include <cstring>

#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"
#include "tests/support/reference_data.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::test {
namespace {

/// True if the dataset holds strings.
bool holds_strings(const std::filesystem::path& file, const std::string& dataset) {
  const H5Handle open(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const H5Handle data(H5Dopen2(open.id(), dataset.c_str(), H5P_DEFAULT), H5Dclose);
  const H5Handle type(H5Dget_type(data.id()), H5Tclose);
  return H5Tget_class(type.id()) == H5T_STRING;
}

/// The bytes of a dataset of strings of one length, as they lie in the file.
std::vector<char> bytes_of(const std::filesystem::path& file, const std::string& dataset) {
  const H5Handle open(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const H5Handle data(H5Dopen2(open.id(), dataset.c_str(), H5P_DEFAULT), H5Dclose);
  const H5Handle type(H5Dget_type(data.id()), H5Tclose), space(H5Dget_space(data.id()), H5Sclose);
  EXPECT_FALSE(H5Tis_variable_str(type.id()) > 0) << dataset;
  std::vector<char> bytes(H5Tget_size(type.id()) *
                          static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.id())));
  EXPECT_GE(H5Dread(data.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), 0);
  return bytes;
}

/// Two files whose datasets are compared.
struct ResultPair {
  std::filesystem::path first, second;
  H5Reader a{first}, b{second};
};

/// Compares every dataset below `group`.
void expect_same(const ResultPair& pair, const std::string& group, int* n_compared) {
  const H5Reader &a = pair.a, &b = pair.b;
  for (const std::string& name : a.children(group.empty() ? "/" : group)) {
    const std::string path = group + "/" + name;
    if (name == "seconds" || name == "wall_seconds") continue;
    ASSERT_TRUE(b.has(path)) << path;
    bool is_group = true;
    try {
      a.children(path);
    } catch (const InvalidInput&) {
      is_group = false;
    }
    if (is_group) {
      expect_same(pair, path, n_compared);
      continue;
    }
    ++*n_compared;
    std::string text;
    try {
      text = a.text(path);
    } catch (const InvalidInput&) {
      if (holds_strings(pair.first, path)) {
        EXPECT_EQ(bytes_of(pair.first, path), bytes_of(pair.second, path)) << path;
        continue;
      }
      const auto x = a.doubles(path), y = b.doubles(path);
      ASSERT_EQ(x.size(), y.size()) << path;
      EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(double)), 0) << path;
      continue;
    }
    EXPECT_EQ(text, b.text(path)) << path;
  }
}

}  // namespace

void add_input(Service& service, v1::JobSpec* spec, const std::string& slot,
               const std::filesystem::path& file) {
  const auto [digest, size_bytes] = wire::digest_file(file);
  const auto status = wire::upload_file(service.channel(), file, digest, size_bytes);
  ASSERT_TRUE(status.ok()) << status.error_message();
  auto* input = spec->add_inputs();
  input->set_slot(slot);
  input->set_digest(digest);
  input->set_size_bytes(size_bytes);
}

std::filesystem::path fetch(Service& service, const v1::Job& job, const std::string& name) {
  const auto path = service.directory() / (job.id() + "-" + name);
  for (const auto& artifact : job.artifacts()) {
    if (artifact.name() != name) continue;
    EXPECT_TRUE(
        wire::download_file(service.channel(), artifact.digest(), artifact.size_bytes(), path)
            .ok());
  }
  EXPECT_TRUE(std::filesystem::exists(path)) << job.id() << " left no " << name;
  return path;
}

v1::JobSpec silicon_4ph(Service& service, const std::string& divisions,
                        const std::string& scalebroad) {
  v1::JobSpec spec;
  const auto deck = source_dir() / "examples/thermal/silicon-sw";
  for (const char* file :
       {"CONTROL", "FORCE_CONSTANTS_2ND", "FORCE_CONSTANTS_3RD", "FORCE_CONSTANTS_4TH"})
    add_input(service, &spec, std::string("deck/") + file, deck / file);
  spec.mutable_thermal()->set_deck("deck");
  const std::pair<const char*, std::string> settings[]{
      {"four_phonon", ".true."},
      {"ngrid", divisions + " " + divisions + " " + divisions},
      {"scalebroad", scalebroad},
      {"checkpoint_interval_s", "0"}};
  for (const auto& [key, value] : settings) {
    auto* setting = spec.mutable_thermal()->add_settings();
    setting->set_key(key);
    setting->set_value(value);
  }
  return spec;
}

void expect_same_results(const std::filesystem::path& a, const std::filesystem::path& b,
                         int n_least) {
  int n_compared = 0;
  expect_same({.first = a, .second = b}, "", &n_compared);
  EXPECT_GE(n_compared, n_least);
}

}  // namespace quasi::test
