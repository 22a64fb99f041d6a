#include "tests/service/support/hostile_decks.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>

#include "workers/io/hdf5.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

template <class Number>
std::string shown(const char* bytes) {
  Number value;
  std::memcpy(&value, bytes, sizeof value);
  return std::to_string(value);
}

/// Runs `fill` on a new HDF5 file with the group /mf_header.
fs::path make_file(const fs::path& path, const std::function<void(hid_t file)>& fill) {
  const H5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  fill(file.id());
  return path;
}

void make_group(hid_t file) {
  const H5Handle group(H5Gcreate2(file, "/mf_header", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                       H5Gclose);
}

/// Makes a dataset of 64-bit integers with the properties that `describe` sets. The first dataset
/// that GW reads of a wavefunction file is /mf_header/flavor.
void make_dataset(hid_t file, const std::string& name, const std::vector<hsize_t>& extent,
                  const std::function<void(hid_t creation)>& describe) {
  const H5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  describe(creation.id());
  const H5Handle space(
      extent.empty() ? H5Screate(H5S_SCALAR)
                     : H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
      H5Sclose);
  const H5Handle dataset(H5Dcreate2(file, name.c_str(), H5T_NATIVE_INT64, space.id(), H5P_DEFAULT,
                                    creation.id(), H5P_DEFAULT),
                         H5Dclose);
}

constexpr char kFlavor[] = "/mf_header/flavor";

fs::path external_storage(const fs::path& path, const std::string& target, off_t offset) {
  return make_file(path, [&](hid_t file) {
    make_group(file);
    make_dataset(file, kFlavor, {1},
                 [&](hid_t creation) { H5Pset_external(creation, target.c_str(), offset, 8); });
  });
}

fs::path external_link(const fs::path& path, const std::string& target, const std::string& object,
                       const std::string& name) {
  return make_file(path, [&](hid_t file) {
    if (name != "/mf_header") make_group(file);
    H5Lcreate_external(target.c_str(), object.c_str(), file, name.c_str(), H5P_DEFAULT,
                       H5P_DEFAULT);
  });
}

fs::path virtual_dataset(const fs::path& path, const std::string& target) {
  return make_file(path, [&](hid_t file) {
    make_group(file);
    make_dataset(file, kFlavor, {1}, [&](hid_t creation) {
      const hsize_t one = 1;
      const H5Handle space(H5Screate_simple(1, &one, nullptr), H5Sclose);
      H5Pset_virtual(creation, space.id(), target.c_str(), "/flavor", space.id());
    });
  });
}

fs::path announced(const fs::path& path, const std::vector<hsize_t>& extent) {
  return make_file(path, [&](hid_t file) {
    make_group(file);
    make_dataset(file, kFlavor, extent, [&](hid_t creation) {
      const std::vector<hsize_t> chunk(extent.size(), 1);
      H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
    });
  });
}

/// Writes a file that is a thousand times smaller than its values.
fs::path zeros_compressed(const fs::path& path) {
  return make_file(path, [&](hid_t file) {
    make_group(file);
    const std::vector<hsize_t> extent{hsize_t{1} << 24};
    make_dataset(file, kFlavor, extent, [&](hid_t creation) {
      H5Pset_chunk(creation, 1, extent.data());
      H5Pset_deflate(creation, 9);
    });
    const H5Handle dataset(H5Dopen2(file, kFlavor, H5P_DEFAULT), H5Dclose);
    const std::vector<std::int64_t> zeros(extent[0]);
    H5Dwrite(dataset.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data());
  });
}

fs::path plain_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::vector<std::string> forms_of_secret() {
  return {kSecret, shown<std::int64_t>(kSecret), shown<std::int32_t>(kSecret),
          shown<std::int32_t>(kSecret + 4)};
}

void write_host_files(const HostFiles& host) {
  fs::create_directories(host.folder);
  const std::string secret = kSecret;
  plain_file(host.folder / "values.bin", secret + secret + secret + secret);
  for (const char* name : {"profile.csv", "CONTROL", "WFN"})
    plain_file(host.folder / name, secret + "\n");
  make_file(host.folder / "secret.h5", [&](hid_t file) {
    make_dataset(file, "/flavor", {1}, [](hid_t) {});
    const H5Handle dataset(H5Dopen2(file, "/flavor", H5P_DEFAULT), H5Dclose);
    H5Dwrite(dataset.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, kSecret);
  });
}

std::vector<HostileJob> hostile_paths(const HostFiles& host) {
  const std::string folder = host.folder.string();
  const std::vector<std::pair<std::string, std::string>> targets{
      {"an absolute path", folder + "/profile.csv"},
      {"dots", "../../../../foreign/profile.csv"},
      {"dots behind a name", "deck.toml/../../../../../foreign/profile.csv"},
      {"its own log", "../log.txt"},
      {"a neighbour's deck", host.neighbour.string()},
      {"the server's database", host.database.string()},
      {"the server's socket", host.socket.string()},
      {"the worker's files", host.worker_key.string()},
      {"endless zeros", "/dev/zero"},
      {"its own environment", "/proc/self/environ"},
      {"the environment of another process", "/proc/1/environ"},
      {"its own memory", "/proc/self/mem"},
      {"its own descriptors", "/proc/self/fd/3"},
      {"a link of the kernel", "/proc/self/root" + folder + "/profile.csv"},
      {"the passwords", "/etc/passwd"},
  };
  std::vector<HostileJob> jobs;
  for (const auto& [name, target] : targets) {
    const std::string value = '"' + target + '"';
    jobs.push_back(
        {"doping profile: " + name, "mosfet", "[doping]\nprofile = " + value + "\n", {}, {}});
    jobs.push_back(
        {"setting of the profile: " + name, "mosfet", "", {"doping.profile", value}, {}});
    jobs.push_back({"wavefunctions: " + name,
                    "gw",
                    "[meanfield]\nwfn = " + value +
                        "\nrho = \"RHO\"\nvxc = \"VXC\"\n[epsilon]\ncutoff_ry = 10.0\n",
                    {},
                    {}});
  }
  jobs.push_back({"a deck nested 100,000 deep",
                  "mosfet",
                  "x = " + std::string(100'000, '[') + std::string(100'000, ']') + "\n",
                  {},
                  {}});
  for (const std::string& target : {folder, std::string("../../../../foreign"),
                                    host.neighbour.parent_path().string(), std::string("/proc/1")})
    jobs.push_back(
        {"folder of a deck: " + target, "thermal", "directory = \"" + target + "\"\n", {}, {}});
  return jobs;
}

std::vector<HostileJob> hostile_hdf5_files(const HostFiles& host, const fs::path& scratch) {
  fs::create_directories(scratch);
  const std::string values = (host.folder / "values.bin").string();
  const std::string secret = (host.folder / "secret.h5").string();
  std::vector<std::pair<std::string, fs::path>> files;
  const auto next = [&] { return scratch / (std::to_string(files.size()) + ".h5"); };
  for (const auto& [name, target, offset] :
       {std::tuple<std::string, std::string, off_t>{"absolute", values, 8},
        {"by dots", "../../../../foreign/values.bin", 0},
        {"a neighbour's deck", host.neighbour.string(), 0},
        {"the server's database", host.database.string(), 0},
        {"endless zeros", "/dev/zero", 0},
        {"its own environment", "/proc/self/environ", 0},
        {"its own memory", "/proc/self/mem", 4096}})
    files.emplace_back("external storage: " + name, external_storage(next(), target, offset));
  files.emplace_back("external link to a group", external_link(next(), secret, "/", "/mf_header"));
  files.emplace_back("external link to a dataset",
                     external_link(next(), secret, "/flavor", kFlavor));
  files.emplace_back("external link by dots",
                     external_link(next(), "../../../../foreign/secret.h5", "/flavor", kFlavor));
  files.emplace_back("virtual dataset", virtual_dataset(next(), secret));
  files.emplace_back("virtual dataset by dots",
                     virtual_dataset(next(), "../../../../foreign/secret.h5"));
  files.emplace_back("announced size of 2^50", announced(next(), {hsize_t{1} << 50}));
  files.emplace_back("announced size beyond 2^64",
                     announced(next(), {hsize_t{1} << 31, hsize_t{1} << 31, 4}));
  files.emplace_back("links in a circle", make_file(next(), [](hid_t file) {
                       make_group(file);
                       H5Lcreate_soft(kFlavor, file, kFlavor, H5P_DEFAULT, H5P_DEFAULT);
                     }));
  files.emplace_back("a group inside itself", make_file(next(), [](hid_t file) {
                       make_group(file);
                       H5Lcreate_hard(file, "/mf_header", file, "/mf_header/flavor", H5P_DEFAULT,
                                      H5P_DEFAULT);
                     }));
  files.emplace_back("128 MiB of zeros in a few bytes", zeros_compressed(next()));
  const std::string whole = bytes_of(files.front().second);
  files.emplace_back("a file cut short", plain_file(next(), whole.substr(0, whole.size() / 2)));
  std::string spoilt = whole;
  for (std::size_t i = 16; i < spoilt.size(); i += 7) spoilt[i] = '\xff';
  files.emplace_back("a spoilt file", plain_file(next(), spoilt));
  files.emplace_back("an empty file", plain_file(next(), ""));

  std::vector<HostileJob> jobs;
  for (const auto& [name, path] : files)
    jobs.push_back({name,
                    "gw",
                    "[meanfield]\nwfn = \"WFN.h5\"\nrho = \"RHO\"\nvxc = \"VXC\"\n"
                    "[epsilon]\ncutoff_ry = 10.0\n",
                    {},
                    {{"WFN.h5", path}, {"RHO", path}, {"VXC", path}}});
  return jobs;
}

std::vector<std::string> hostile_slots() {
  return {"../deck.toml",
          "/etc/cron.d/deck",
          "deck/../../x",
          "deck//x",
          "./deck.toml",
          "deck/..",
          "a/./b",
          "..",
          std::string("deck\0x", 6),
          "deck\nx"};
}

}  // namespace quasi::test
